"""Files that name one another: all problems are found, each file is read once, nothing of a tool's code runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ledgercli.errors import InvalidDocumentError, LedgerCliError, UnreadableInputError
from ledgercli.loading import (
    Loader,
    folder_of,
    load_pack,
    load_packs,
    load_scenario,
    load_toolset,
    located,
    refuse,
    shown,
)
from ledgercli.rulebook import Rulebook
from ledgercli.runnable import functions_of
from ledgercli.sources import Problem, Source
from tests.books import book, judge, scenario, write

TOOLS = "toolset: t\ntools: {act: {args: {x: {default: null}}, on_success: {set: {facts.n: result.data}}}}\n"
SCENARIO = "scenario: s\ntoolset: t.tools.yaml\ndecide: {script: []}\n"


def pack(name: str, *include: str, rules: str = "[]", more: str = "") -> str:
    return f"pack: {name}\ninclude: [{', '.join(include)}]\n{more}\nrules: {rules}\n"


def found(call: Any) -> list[tuple[str, str]]:
    with pytest.raises(InvalidDocumentError) as caught:
        call()
    return [(problem.code, problem.message) for problem in caught.value.problems]  # type: ignore[attr-defined]


def book_of(file: Path) -> Rulebook:
    loaded = load_scenario(str(file))
    return Rulebook(loaded.toolset, loaded.packs, scenario=loaded)


def codes(folder: Path, text: str, tools: str = TOOLS, *packs: str) -> list[str]:
    return [problem.code for problem in book_of(scenario(folder, text, tools, *packs)).problems()]


# ---- packs that include packs


def test_included_packs_come_before_those_that_include_them_and_each_once(tmp_path: Path) -> None:
    files = write(tmp_path, a=pack("a", "b.yaml", "c.yaml"), b=pack("b", "c.yaml"), c=pack("c"))
    assert [one.name for one in load_packs([files["a"], files["b"]])] == ["c", "b", "a"]


def test_paths_are_relative_to_the_file_that_names_them(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    write(tmp_path / "inner", b=pack("b", "../c.yaml"))
    files = write(tmp_path, a=pack("a", "inner/b.yaml"), c=pack("c"))
    assert [one.name for one in load_packs([files["a"]])] == ["c", "b", "a"]


def test_a_pack_that_is_loaded_already_is_taken_as_it_is(tmp_path: Path) -> None:
    files = write(tmp_path, a=pack("a"), b=pack("b"))
    ready = load_pack(files["a"])
    packs = load_packs([ready, files["b"]])
    assert packs[0] is ready
    assert [one.name for one in packs] == ["a", "b"]


def test_what_a_given_pack_includes_is_judged_too(tmp_path: Path) -> None:
    rules = "[{name: never, check: 'false', on_fail: No.}]"
    files = write(tmp_path, a=pack("a", "b.yaml"), b=pack("b", rules=rules))
    (tmp_path / "t.tools.yaml").write_text(TOOLS)
    for given in (files["a"], load_pack(files["a"])):
        rules_of = Rulebook.of([given], tmp_path / "t.tools.yaml", {})
        assert judge(rules_of, "act").reason == "No."


def test_packs_that_include_each_other_are_a_problem_that_shows_the_circle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, a=pack("a", "b.yaml"), b=pack("b", "c.yaml"), c=pack("c", "b.yaml"))
    assert ("cyclic-include", "these packs include each other: b.yaml -> c.yaml -> b.yaml") in found(
        lambda: load_packs(["a.yaml"])
    )


def test_a_pack_that_includes_itself_is_a_problem(tmp_path: Path) -> None:
    files = write(tmp_path, a=pack("a", "a.yaml"))
    assert [code for code, _ in found(lambda: load_packs([files["a"]]))] == ["cyclic-include"]


def test_two_packs_of_one_name_are_a_problem_and_one_pack_reached_twice_is_none(tmp_path: Path) -> None:
    write(tmp_path, a=pack("a", "b.yaml", "c.yaml"), b=pack("b"), c=pack("b", more="version: 2"))
    assert [code for code, _ in found(lambda: load_packs([tmp_path / "a.yaml"]))] == ["duplicate-pack"]


def test_two_defaults_for_one_constraint_are_a_problem(tmp_path: Path) -> None:
    limits = "constraints: {most: 1}"
    write(tmp_path, a=pack("a", "b.yaml", more=limits), b=pack("b", more=limits))
    assert found(lambda: load_packs([tmp_path / "a.yaml"])) == [
        ("duplicate-default", "the pack b has a default for the constraint most too")
    ]


def test_two_defaults_are_a_problem_also_where_the_command_line_adds_one(tmp_path: Path) -> None:
    limits = "constraints: {most: 1}"
    file = scenario(tmp_path, SCENARIO + "packs: [p0.yaml]\n", TOOLS, pack("p", more=limits))
    files = write(tmp_path, q=pack("q", more=limits), p=pack("p", more=limits + "\nversion: 2"))
    assert [code for code, _ in found(lambda: load_scenario(str(file), [str(files["q"])]))] == ["duplicate-default"]
    assert load_scenario(str(file), [str(files["p"])]).replaced == ["p"]


def test_a_shipped_pack_is_named_without_a_path(tmp_path: Path) -> None:
    files = write(tmp_path, a=pack("a", '"ledgercli:loops"'))
    assert [one.name for one in load_packs([files["a"]])] == ["loops", "a"]
    assert load_pack("ledgercli:loops").name == "loops"
    with pytest.raises(UnreadableInputError, match="no pack ledgercli:loop comes with the package; there is loops"):
        load_pack("ledgercli:loop")


# ---- what is missing or of another kind


def test_every_file_that_cannot_be_read_is_a_problem_where_it_is_named(tmp_path: Path) -> None:
    text = "scenario: s\ntoolset: none.yaml\npacks: [p0.yaml, also-none.yaml, t.tools.yaml, 'ledgercli:nothing']\ndecide: {script: []}\n"
    file = scenario(tmp_path, text, TOOLS, pack("p", "gone.yaml"))
    with pytest.raises(InvalidDocumentError) as caught:
        load_scenario(str(file))
    places = [(Path(problem.file).name, problem.code, problem.line) for problem in caught.value.problems]  # type: ignore[attr-defined]
    assert places == [
        ("p0.yaml", "unreadable-file", 2), ("s.yaml", "unreadable-file", 2), *[("s.yaml", "unreadable-file", 3)] * 3,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (TOOLS, "is a toolset; a pack was asked for"),
        ("other: 1\n", "does not begin with `pack:`"),
        ("", "does not begin with `pack:`"),
    ],
)
def test_a_file_of_another_kind_is_refused(tmp_path: Path, text: str, why: str) -> None:
    with pytest.raises(LedgerCliError) as caught:
        load_pack(write(tmp_path, a=text)["a"])
    assert why in caught.value.message


def test_a_pack_that_is_no_text_is_a_problem_where_it_is_included(tmp_path: Path) -> None:
    (tmp_path / "b.yaml").write_bytes(b"pack: b\n\xff\xfe: 1\n")
    files = write(tmp_path, a=pack("a", "b.yaml"))
    assert len(found(lambda: load_packs([files["a"]]))) == 1
    assert len(found(lambda: load_pack(tmp_path / "b.yaml"))) == 1


@pytest.mark.parametrize(
    ("rules", "more"),
    [
        ("[{name: r}]", ""),
        ("[{name: r, check: 'true', grant: 'true'}]", "resolve: priority"),
        ("[]", "vocabulary: {facts: {vip: boole}}"),
        ("[]", "vocabulary: {tools: {pay: {amount: 'list(nummer)'}}}"),
    ],
)
def test_a_rule_is_a_check_or_a_grant_and_a_type_is_one_that_there_is(tmp_path: Path, rules: str, more: str) -> None:
    files = write(tmp_path, a=pack("a", rules=rules, more=more))
    assert len(found(lambda: load_pack(files["a"]))) == 1


def test_a_scenario_is_made_of_a_script_or_a_recording(tmp_path: Path) -> None:
    file = scenario(tmp_path, SCENARIO.replace("{script: []}", "{}"), TOOLS)
    assert len(found(lambda: load_scenario(str(file)))) == 1


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    for load in (load_pack, load_toolset, load_scenario):
        with pytest.raises(UnreadableInputError):
            load(str(tmp_path / "none.yaml"))


def test_all_problems_of_all_files_are_told_together(tmp_path: Path) -> None:
    text = SCENARIO.replace("decide", "packs: [p0.yaml]\nfactz: {}\ndecide")
    tools = TOOLS.replace("args:", "argz:")
    file = scenario(tmp_path, text, tools, pack("p", more="resolv: strictest"))
    with pytest.raises(InvalidDocumentError) as caught:
        load_scenario(str(file))
    assert sorted(Path(problem.file).name for problem in caught.value.problems) == ["p0.yaml", "s.yaml", "t.tools.yaml"]  # type: ignore[attr-defined]
    assert caught.value.message.startswith("3 errors in ")


def test_warnings_alone_refuse_nothing() -> None:
    refuse([Problem("code", "message", "f.yaml", severity="warning")])
    with pytest.raises(InvalidDocumentError, match=r"^1 error in g\.yaml$"):
        refuse([Problem("code", "message", "f.yaml", severity="warning"), Problem("code", "message", "g.yaml")])


def test_contents_may_stand_for_files() -> None:
    """A ledger carries its files; nothing is read from the disk then."""
    read = Loader(sources={"here.yaml": Source.of("here.yaml", pack("mine"))}).pack("here.yaml")
    assert read is not None
    assert read.name == "mine"


def test_paths_are_shown_from_the_current_folder_where_they_are_below_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert shown(tmp_path / "a" / "b.yaml") == "a/b.yaml"
    assert shown(Path("/elsewhere/b.yaml")) == "/elsewhere/b.yaml"
    assert located("b.yaml", Path("x/../a")) == "a/b.yaml"
    assert located("-", Path("a")) == "-"
    assert (folder_of("-"), folder_of("a/b.yaml")) == (Path(), Path("a"))


# ---- what a toolset and a scenario say besides expressions


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("constraints: {max_steps: many}", "not-a-limit"),
        ("constraints: {max_steps: true}", "not-a-limit"),
        ("constraints: {max_repeats: -1}", "not-a-limit"),
        ("now: tomorrow", "not-a-time"),
        ("goals: [{name: g, goals: [{name: g}]}]", "duplicate-goal"),
        ("expect: {status: complete}", "unknown-status"),
        ("expect: {facts.m: 1}", "unknown-fact"),
        ("expect: {facts.n.m: 1, answr: 1}", "unknown-expectation"),
        ("expect: {'facts.n[x]': 1}", "not-a-path"),
        ("expect: {goals.h: true}", "unknown-goal"),
    ],
)
def test_what_means_nothing_in_a_scenario_is_a_problem(tmp_path: Path, text: str, code: str) -> None:
    assert code in codes(tmp_path, SCENARIO + text + "\n")


def test_what_a_scenario_may_expect_is_no_problem(tmp_path: Path) -> None:
    text = "goals: [{name: g}]\nexpect: {status: failed, answer: 1, final_answer: 1, error: x, goal: g, facts.n: 1, goals.g: true}\n"
    assert codes(tmp_path, SCENARIO + text) == []


def test_a_recording_that_is_not_there_is_a_problem(tmp_path: Path) -> None:
    text = SCENARIO.replace("{script: []}", "{recording: {file: none.json, format: openai-chat}}")
    assert codes(tmp_path, text) == ["no-file"]


@pytest.mark.parametrize(
    ("entry", "code"),
    [
        ("act: {run: {python: 'none.py:act'}}", "no-file"),
        ("act: {run: {python: 'code.py:atc'}}", "unknown-python-function"),
        ("act: {run: {python: 'code.py'}}", "not-a-function"),
        ("act: {run: {python: ':act'}}", "not-a-function"),
        ("act: {run: {python: 'broken.py:act'}}", "not-python"),
        ("act: {args: {x: {}}, run: {canned: [{args: {y: 1}, result: 1}]}}", "unknown-argument"),
        ("finish: {run: {canned: []}}", "built-in-tool"),
    ],
)
def test_what_a_toolset_names_must_be_there(tmp_path: Path, entry: str, code: str) -> None:
    (tmp_path / "code.py").write_text("raise SystemExit('this is never imported')\ndef act(): pass\n")
    (tmp_path / "broken.py").write_text("def act(:\n")
    with pytest.raises(InvalidDocumentError) as caught:
        book(tmp_path, tools=f"toolset: t\ntools: {{{entry}}}\n")
    assert code in [problem.code for problem in caught.value.problems]  # type: ignore[attr-defined]


def test_functions_are_found_by_reading_alone(tmp_path: Path) -> None:
    file = tmp_path / "code.py"
    file.write_text(
        "raise SystemExit\nimport os.path, json as j\nfrom re import match\ndef a(): pass\nasync def b(): pass\nclass C: pass\nd = a\ne.f = 1\n"
    )
    assert functions_of(file) == {"os", "j", "match", "a", "b", "C", "d"}
    tools = "toolset: t\ntools: {one: {run: {python: 'code.py:a'}}, two: {run: {python: 'code.py:d'}}, three: {run: {python: 'no.such.module:x'}}}\n"
    assert set(book(tmp_path, tools=tools).toolset.file.tools) == {"one", "two", "three"}
