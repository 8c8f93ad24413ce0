"""What `ledger doc` shows, byte for byte, and that its page is one that browsers, readers and printers can use."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest

from ledgercli.cli import main
from tests.cli.conftest import GOLDEN, PROJECT, UPDATE, Ran

PACKS = {
    "weather": "policies/weather.yaml --cases fixtures/scenarios/weather.cases.yaml",
    "support": "policies/support.yaml --toolset fixtures/toolsets/shop.tools.yaml",
    "airline": "policies/airline.yaml --toolset policies/airline.tools.yaml",
    "confirm": "policies/confirm.yaml",
    "loops": "policies/loops.yaml",
    "goodwill": "policies/goodwill.yaml --cases fixtures/cases/goodwill.cases.yaml",
    "limits_unverified": "policies/limits_unverified.yaml --toolset fixtures/toolsets/shop.tools.yaml",
    "limits_verified": "policies/limits_verified.yaml --toolset fixtures/toolsets/shop.tools.yaml",
}
VOID = {"meta", "br"}


@pytest.fixture
def doc(folder, monkeypatch, capsysbinary):
    """Run `ledger doc` in this process, where each run costs less."""
    monkeypatch.chdir(folder)

    def run(*arguments: str) -> Ran:
        code = main(["doc", *arguments])
        return Ran(code, *capsysbinary.readouterr())

    return run


def held(name: str, shown: bytes) -> None:
    file = GOLDEN / name
    if UPDATE:
        file.write_bytes(shown)
    assert shown == file.read_bytes()


def test_every_shipped_pack_is_here():
    assert set(PACKS) == {one.stem for one in (PROJECT / "policies").glob("*.yaml") if not one.stem.endswith(".tools")}


@pytest.mark.parametrize("name", PACKS)
def test_each_shipped_pack_in_plain_sentences(doc, name):
    ran = doc(*PACKS[name].split())
    assert (ran.code, ran.err) == (0, b"")
    held(f"doc-{name}.md", ran.out)


class Page(HTMLParser):
    """A page, read as a browser reads it, with what is wrong with it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.wrong: list[str] = []
        self.ids: set[str] = set()
        self.links: set[str] = set()
        self.tags: list[str] = []
        self.said = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag not in VOID:
            self.open.append(tag)
        for name, value in attrs:
            if name == "id":
                self.wrong += [f"a second {value}"] if value in self.ids else []
                self.ids.add(value)
            if name in ("href", "aria-labelledby"):
                self.links.add(value.removeprefix("#"))
            if name == "src" or name.startswith("on") or (name == "href" and not value.startswith("#")):
                self.wrong.append(f"{name}={value}")

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.wrong.append(f"</{tag}>")

    def handle_data(self, data):
        self.said += data


def test_the_page_is_whole_says_the_same_and_needs_nothing_else(doc):
    shown = doc(*PACKS["support"].split(), "--format", "html").out
    held("doc-support.html", shown)
    page = Page(shown.decode())
    assert (page.wrong, page.open) == ([], [])
    assert page.links <= page.ids
    assert {"title", "nav", "main", "h1", "caption", "thead", "th"} <= set(page.tags)
    assert not {"script", "link", "img", "iframe"} & set(page.tags)
    assert shown.startswith(b'<!DOCTYPE html>\n<html lang="en">') and b"@media print" in shown
    told = (GOLDEN / "doc-support.md").read_text(encoding="utf-8").replace("`", "")
    for line in told.splitlines():
        if line.lstrip().startswith("- "):
            assert line.lstrip()[2:] in page.said


HOSTILE = """\
pack: hostile
description: "<script>alert(1)</script> [x](javascript:y) | # a `b` \\u202e"
vocabulary: {tools: {pay: {amount: int, to: string}}, facts: {vip: "bool?"}}
rules:
  - name: r
    description: "**a** <img src=x onerror=y> @team | b"
    tools: [pay]
    check: action.args.to != "</code><b>|`" && action.args.to != "&amp; \\u001b[31m" && (action.args.to == "in" || state.facts.vip)
"""


def test_what_a_pack_says_cannot_become_structure(doc, ledger, folder):
    (folder / "said.yaml").write_text(HOSTILE, encoding="utf-8")
    ran = doc("said.yaml", "--format", "html")
    page = Page(ran.out.decode())
    assert (ran.code, page.wrong, page.open) == (0, [], [])
    assert not {"script", "img", "b"} & set(page.tags)
    assert '"</code><b>|`"' in page.said
    shown = doc("said.yaml").out.decode()
    assert 'is "in"' in shown.replace("`", "")
    assert "<script" not in shown and "<img" not in shown and "@team" not in shown
    assert "\x1b" not in shown and "\u202e" not in shown
    assert '``"</code><b>\\|`"``' in shown.replace("`` ", "``").replace(" ``", "``")
    assert ledger("doc", "said.yaml", env={"LANG": "C"}).out.decode("ascii")


def test_a_pack_without_a_vocabulary_needs_its_tools(doc):
    ran = doc("policies/support.yaml")
    assert (ran.code, ran.out) == (2, b"")
    assert b"nothing says which tools and facts the pack support may name" in ran.err
    assert b"--toolset FILE" in ran.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("policies/suport.yaml", b"error: no file policies/suport.yaml"),
        ("fixtures/toolsets/shop.tools.yaml", b"is a toolset; a pack was asked for"),
        ("broken/support.yaml --toolset broken/shop.tools.yaml", b"error[yaml-tag]"),
        (
            "policies/weather.yaml --toolset fixtures/scenarios/weather.tools.yaml",
            b"no constraint sensitive_locations",
        ),
        ("policies/support.yaml --toolset policies/weather.yaml", b"is a pack; a toolset was asked for"),
        ("policies/support.yaml --cases policies/weather.yaml", b"is a pack; a cases was asked for"),
    ],
)
def test_what_cannot_be_read_is_an_error(doc, arguments, said):
    ran = doc(*arguments.split())
    assert (ran.code, ran.out) == (2, b"")
    assert said in ran.err
    assert b"Traceback" not in ran.err


def test_a_toolset_alone_is_enough_where_it_sets_all_that_is_read(doc, folder):
    (folder / "p.yaml").write_text(
        "pack: p\nrules:\n  - {name: r, tools: [create_return], check: state.facts.user_authenticated == true}\n"
    )
    ran = doc("p.yaml", "--toolset", "fixtures/toolsets/shop.tools.yaml", "--report", "p.md")
    assert (ran.code, ran.out) == (0, b"")
    assert "- `create_return` only if `state.facts.user_authenticated` is true.\n" in (folder / "p.md").read_text()
    again = doc("p.yaml", "--toolset", "fixtures/toolsets/shop.tools.yaml", "--report", "p.md")
    assert again.err.startswith(b"error: p.md exists")


def test_a_scenario_brings_tools_and_values(doc):
    ran = doc("fixtures/scenarios/shop-zh.pack.yaml", "--scenario", "fixtures/scenarios/shop-zh.yaml")
    assert (ran.code, ran.err) == (0, b"")
    held("doc-shop-zh.md", ran.out)
    both = doc("policies/weather.yaml", "--scenario", "fixtures/scenarios/weather.yaml", "--toolset", "x.yaml")
    assert both.code == 2
    assert b"either --toolset or --scenario" in both.err
