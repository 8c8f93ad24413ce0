"""A scanner of YAML that refuses what quietly destroys expressions, and goes on after it.

Invariants:
* Tags, anchors, aliases, directives, tabs, odd spaces, stray colons and quotes are reported as findings and then read
  as the plain text that their author meant, so that one pass shows all that is wrong with a file.
* A finding that only follows from another one on its line is left out.
* Scalars are read by `scalars`; they stand in `scanned` by the offset where each starts.

ruamel.yaml decides all that concerns structure: indentation, keys, flow collections, the order of tokens. Importing
this module imports ruamel; `yaml_reader` does so only when it parses.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from ruamel.yaml.scanner import Scanner
from ruamel.yaml.tokens import FlowMappingEndToken, FlowSequenceEndToken, ScalarToken

from ledgercli.documents import scalars
from ledgercli.documents.scalars import ODD_SPACE, QUOTE_OR_BLOCK, Scanned, quoting
from ledgercli.documents.yaml_text import (
    MAX_DEPTH,
    MAX_FINDINGS,
    DepthError,
    Finding,
    TooManyFindingsError,
    name_of,
)
from ledgercli.sources import shown

_LONGEST_KEY = 200  # characters looked at for the key before a value
_LOOK_BACK = 20  # findings that a later one may follow from
_TABS = re.compile(r"(?:\t *+)++")
_ODD_SPACES = re.compile(f"{ODD_SPACE}+")
_MISREAD_SPACE = re.compile(rf"\n *+(?P<first>{ODD_SPACE}++)|(?P<last>{ODD_SPACE}++)(?=\Z|\n|#)")
_BLOCK_COLON = re.compile(rf":(?=[ \t\n]|{ODD_SPACE}|\Z)")
_FLOW_COLON = re.compile(rf":(?=[ \t\n,\[\]{{}}]|{ODD_SPACE}|\Z)")
_KEY_BEFORE = re.compile(r"""(?:^|[\s{,\[])(?P<quote>["']?)(?P<key>[^\s"'{},\[\]:]+)(?P=quote)[ ]*:[ ]*$""")
_PROPERTY = re.compile(r"[!&*][^\s,{}]*+ *+")
_REAL_PROPERTY = re.compile(
    r"""[!&][\w!<>./:-]*+
    (?: (?=[ ]++(?:[|>][-+0-9]*+[ ]*+\n | ["'{\[]))                   # a block, quote, map or list begins on this line
      | (?=[ ]*+(?:\#[^\n]*+)?\n(?:[ ]*+\n)*+(?P<indent>[ ]*+)(?P<dash>-[ \n])?[^\s]?) )  # or what is deeper, below
    """,
    re.VERBOSE,
)
_REST_BLOCK = re.compile(r"(?:[^ \n]++| ++(?!#|\n|\Z))*+")
_REST_FLOW = re.compile(r"(?:[^ \n,\[\]{}]++| ++(?![#,\[\]{}\n]|\Z))*+")
_SPACES = re.compile(r" *+")
_COMMENT_AFTER = re.compile(r"( ++)#(\s?)")
_NOTHING = re.compile(r"(?:[ \t\n]++|(?<![^ \t\n])#[^\n]*+)*+\Z")


class StrictScanner(Scanner):
    """See the module's docstring; the methods are those of ruamel's scanner."""

    def __init__(self, text: str, loader: Any) -> None:
        self.text = text
        self.findings: list[Finding] = []
        self.scanned: dict[int, Scanned] = {}
        self.cut_off: dict[int, int] = {}  # start of a plain scalar → the `#` after it that may belong to it
        self._flow_starts: list[int] = []
        self._lines: list[tuple[int, int]] = []  # where the lines of the findings begin and end
        super().__init__(loader)

    def report(  # noqa: PLR0913 - a finding has as many parts
        self,
        code: str,
        start: int,
        end: int,
        message: str,
        *,
        inline: str | None = None,
        notes: tuple[str, ...] = (),
        follows: bool = False,
    ) -> None:
        """Note a finding; one that `follows` is left out where another one stands on its line."""
        if follows and any(first <= start <= last for first, last in self._lines[-_LOOK_BACK:]):
            return
        if len(self.findings) == MAX_FINDINGS:
            raise TooManyFindingsError
        self._lines.append((self.text.rfind("\n", 0, start) + 1, self._line_end(start)))
        self.findings.append(Finding(code, start, end, message, notes, inline))

    # ---- between tokens

    def scan_to_next_token(self) -> None:
        """Skip spaces, comments and line ends; report tabs and odd spaces, and skip them too."""
        at = self.reader.pointer
        while True:
            at = _SPACES.match(self.text, at).end()  # type: ignore[union-attr]  # it always matches
            character = self.text[at : at + 1]
            if character == "\n":
                at += 1
                if not self.flow_level:
                    self.allow_simple_key = True
            elif character == "#":
                at = self._line_end(at)
            elif tabs := _TABS.match(self.text, at):
                self.report("yaml-tab", at, at + 1, "a tab stands here; YAML wants spaces", follows=True)
                at = tabs.end()
            elif odd := _ODD_SPACES.match(self.text, at):
                self._odd_space(*odd.span())
                at = odd.end()
            else:
                break
        self.reader.seek(at)
        if self.flow_level and self.reader.column <= self.indent and character not in {"", "]", "}"}:
            self._close_flow()

    def _odd_space(self, start: int, end: int) -> None:
        self.report("yaml-space", start, end, f"{name_of(self.text[start])} stands here; YAML wants plain spaces")

    def _line_end(self, at: int) -> int:
        end = self.text.find("\n", at)
        return len(self.text) if end < 0 else end

    # ---- documents

    def fetch_directive(self) -> None:
        """Report a directive, and pass it over."""
        start = self.reader.pointer
        self.report("yaml-directive", start, start + 1, "`%` begins a YAML directive here; there are none in our files")
        self.reader.seek(self._line_end(start))

    def fetch_document_start(self) -> None:
        """Accept `---` before all else; a second document is reported, and not read."""
        if self.tokens_taken + len(self.tokens) == 1:
            super().fetch_document_start()
        else:
            self._second_document(self.reader.pointer)

    def fetch_document_end(self) -> None:
        """Accept `...` after all else."""
        start = self.reader.pointer
        if _NOTHING.match(self.text, start + 3):
            self.fetch_stream_end()
        else:
            self._second_document(start)

    def _second_document(self, start: int) -> None:
        message = "a second YAML document begins here; a file holds one"
        self.report("yaml-documents", start, start + 3, message)
        self.flow_context.clear()
        self.fetch_stream_end()

    # ---- flow collections

    def fetch_flow_collection_start(self, token: Any, to_push: str) -> None:
        """Begin a `[` or `{`."""
        if self.flow_level + len(self.indents) >= MAX_DEPTH:
            raise DepthError(self.reader.pointer)
        self._flow_starts.append(self.reader.pointer)
        super().fetch_flow_collection_start(token, to_push)

    def fetch_flow_collection_end(self, token: Any) -> None:
        """End a `]` or `}`; report text after the outermost one, which would belong to nothing."""
        if not self.flow_level:
            self._indicator()
            return
        super().fetch_flow_collection_end(token)
        start, end = self._flow_starts.pop(), self.reader.pointer
        if self.flow_level or self._ends_here(end, self._is_key(start)):
            return
        rest = self._rest(end)
        what = "map" if self.text[start] == "{" else "list"
        message = f'"{self.text[start]}" begins a YAML {what} here, and text goes on after it'
        self._quote("yaml-braces", start, rest, message)
        self.reader.seek(rest)

    def _close_flow(self) -> None:
        """Report a `[` or `{` that a line indented like its surroundings shows to be open, and close it before that."""
        start = self._flow_starts[-1]
        line = self.reader.line + 1
        notes = ("what stands in it must be indented deeper than its key",)
        message = f"this `{self.text[start]}` is not closed before line {line}"
        self.report("yaml-braces", start, start + 1, message, notes=notes)
        mark = self.reader.get_mark()
        while self.flow_level:
            self.remove_possible_simple_key()
            token = FlowMappingEndToken if self.flow_context.pop() == "{" else FlowSequenceEndToken
            self.tokens.append(token(mark, mark))
        self._flow_starts.clear()
        self.allow_simple_key = True

    def fetch_flow_entry(self) -> None:
        """Take a `,` between entries; outside of `[` and `{` it is text."""
        if self.flow_level:
            super().fetch_flow_entry()
        else:
            self._indicator()

    def _indicator(self) -> None:
        """Report a character that may not begin a text, and read it as text."""
        start = self.reader.pointer
        self._quote("yaml-indicator", start, self._rest(start), f'a text may not begin with "{self.text[start]}"')
        self.fetch_plain()

    # ---- what may begin where

    def check_block_entry(self) -> bool:
        """Tell whether `-` begins an entry of a list; where there can be none it is text."""
        if not super().check_block_entry() and not self._before_odd_space():
            return False
        if not self.flow_level and self.allow_simple_key:
            return True
        start = self.reader.pointer
        message = 'an entry of a list ("- ") may not begin here'
        self._quote("yaml-indicator", start, self._rest(start), message)
        return False

    def check_value(self) -> bool:
        """Tell whether `:` ends a key."""
        return bool(super().check_value()) or self._before_odd_space()

    def _before_odd_space(self) -> bool:
        """Tell whether an odd space follows, which is reported where it stands."""
        return _ODD_SPACES.match(self.text, self.reader.pointer + 1) is not None

    def check_key(self) -> bool:
        """Report `? `, which begins a complex key, and read it as text."""
        start = self.reader.pointer
        if super().check_key():
            self._quote("yaml-key", start, self._rest(start), '"?" begins a complex key here; keys are plain texts')
        return False

    def check_plain(self) -> bool:
        """Report a character that may not begin a text; it is read as text all the same."""
        if not super().check_plain():
            start = self.reader.pointer
            self._quote("yaml-indicator", start, self._rest(start), f'a text may not begin with "{self.text[start]}"')
        return True

    def fetch_tag(self) -> None:
        """Report `!`."""
        self._property("yaml-tag", "a YAML tag", "as it stands, the {key} would be {rest}")

    def fetch_anchor(self) -> None:
        """Report `&`."""
        self._property("yaml-anchor", "a YAML anchor", "as it stands, the {key} would be {rest}")

    def fetch_alias(self) -> None:
        """Report `*`."""
        self._property("yaml-alias", "a YAML alias", "as it stands, the {key} would be a copy of something else")

    def _property(self, code: str, what: str, note: str) -> None:
        """Report a tag, anchor or alias; pass it over before a map, list, block or quote, else read it as text."""
        start = self.reader.pointer
        sign = self.text[start]
        index = len(self.findings)
        self.report(code, start, start + 1, f'"{sign}" begins {what} here')
        real = _REAL_PROPERTY.match(self.text, start)
        if real and (real["indent"] is None or len(real["indent"]) + bool(real["dash"]) > self.indent):
            self.findings[index] = replace(self.findings[index], notes=("remove it; our files have none",))
            self.reader.seek(real.end())
            return
        self.fetch_plain()
        value = self.tokens[-1].value
        before = self.text[max(self.text.rfind("\n", 0, start) + 1, start - _LONGEST_KEY) : start]
        key = match["key"] if (match := _KEY_BEFORE.search(before)) else "value"
        if key == "<<":
            return
        rest = _PROPERTY.sub("", value, count=1)
        self.findings[index] = replace(
            self.findings[index],
            notes=(note.format(key=key, rest=f"`{shown(rest)}`" if rest else "empty"),),
            inline=quoting(value),
        )

    # ---- scalars

    def scan_plain(self) -> Any:
        """Read a plain scalar, with a stray `: ` or tab in it."""
        start = self.reader.pointer
        scanned = scalars.plain(self.text, start, self.indent + 1, flow=bool(self.flow_level))
        if end := self._goes_on(scanned):
            pieces = (*scanned.pieces[:-1], (len(scanned.value), scanned.end))
            value = scanned.value + self.text[scanned.end : end]
            scanned = Scanned(start, end, value, "plain", (*pieces, (len(value), end)))
        for odd in _MISREAD_SPACE.finditer(self.text[start : scanned.end]):
            self._odd_space(*(start + at for at in odd.span(odd.lastgroup or 0)))
        comment = _COMMENT_AFTER.match(self.text, scanned.end)
        if comment and (len(comment[1]) == 1 or not comment[2]):
            self.cut_off[start] = comment.end(1)
        return self._token(scanned)

    def _goes_on(self, scanned: Scanned) -> int:
        """Report a `: ` or a tab right after a plain scalar that makes it no key; return where its line ends."""
        at = _SPACES.match(self.text, scanned.end).end()  # type: ignore[union-attr]
        rest = self._rest(at)
        if self._colon(at) and not self._is_key(scanned.start, scanned.end):
            line = self.text.rfind("\n", 0, at) + 1
            if line > scanned.start:
                first = _SPACES.match(self.text, line).end()  # type: ignore[union-attr]
                began = self.text.count("\n", 0, scanned.start) + 1
                message = f'this line continues the text that begins on line {began}, and ": " may not stand in it'
                notes = (f"indent it like its neighbours, or, if it is text, {QUOTE_OR_BLOCK}",)
                self.report("yaml-colon", first, at + 1, message, notes=notes, follows=True)
            else:
                message = '": " ends a key, and there is one on this line already'
                self._quote("yaml-colon", scanned.start, rest, message, at)
            return rest
        if self.text.startswith("\t", at) and self.text[at : self._line_end(at)].strip(" \t")[:1] not in {"", "#"}:
            self._quote("yaml-tab", scanned.start, rest, "a tab stands here; YAML wants spaces", at)
            return rest
        return 0

    def scan_flow_scalar(self, style: str) -> Any:
        """Read a quoted scalar; report a quote that is not closed, and text after the closing one."""
        del style
        start = self.reader.pointer
        escapes: list[tuple[str, int, int, str]] = []
        scanned = scalars.quoted(self.text, start, lambda *escape: escapes.append(escape))
        if scanned is None or self._hangs(scanned):
            self.report("yaml-quote", start, start + 1, "this quote is not closed", follows=True)
            return self._token(self._raw(start, self._rest(start)))
        for escape in escapes:
            self.report(*escape, notes=(QUOTE_OR_BLOCK,))
        end = scanned.end
        if self._ends_here(end, self._is_key(start, end)):
            return self._token(scanned)
        if odd := _ODD_SPACES.match(self.text, _SPACES.match(self.text, end).end()):  # type: ignore[union-attr]
            self._odd_space(*odd.span())
            return self._token(replace(scanned, end=odd.end()))
        rest = self._rest(end)
        self._quote("yaml-quote", start, rest, "text goes on after the closing quote")
        return self._token(self._raw(start, rest))

    def _hangs(self, scanned: Scanned) -> bool:
        """Tell whether a line of a quoted text is indented too little to belong to it."""
        for match in re.finditer(r"\n( *)(?=[^ \t\n])", self.text[scanned.start : scanned.end]):
            marker = not match[1] and self.text.startswith(scalars.MARKERS, scanned.start + match.end())
            if marker or len(match[1]) <= self.indent:
                return True
        return False

    def scan_block_scalar(self, style: str, rt: bool | None = False) -> Any:  # noqa: FBT001, FBT002 - ruamel's
        """Read a `|` or `>` block."""
        del rt
        start = self.reader.pointer
        scanned = scalars.block(self.text, start, self.indent, self.report)
        if scanned is None:
            self._quote(
                "yaml-block", start, self._rest(start), f"`{style}` begins a block, whose text starts on the next line"
            )
            self.allow_simple_key = False
            scanned = self._raw(start, self._rest(start))
        return self._token(scanned)

    # ---- helpers

    def _token(self, scanned: Scanned) -> Any:
        """Go behind a scalar, and return its token."""
        start_mark = self.reader.get_mark()
        self.reader.seek(scanned.end)
        self.scanned[scanned.start] = scanned
        style = {"plain": None, "single": "'", "double": '"', "literal": "|", "folded": ">"}[scanned.style]
        return ScalarToken(scanned.value, style is None, start_mark, self.reader.get_mark(), style)

    def _raw(self, start: int, end: int) -> Scanned:
        return Scanned(start, end, self.text[start:end], "plain", ((0, start), (end - start, end)))

    def _rest(self, at: int) -> int:
        """Return where the text ends that goes on at an offset: before a comment, its line's end, or a `,` in `{`."""
        match = (_REST_FLOW if self.flow_level else _REST_BLOCK).match(self.text, at)
        return max(match.end() if match else at, min(at + 1, len(self.text)))

    def _colon(self, at: int) -> bool:
        """Tell whether a `:` that ends a key stands here."""
        return (_FLOW_COLON if self.flow_level else _BLOCK_COLON).match(self.text, at) is not None

    def _is_key(self, start: int, end: int | None = None) -> bool:
        """Tell whether what starts here may be the key of a map."""
        key = self.possible_simple_keys.get(self.flow_level)
        return key is not None and key.index == start and "\n" not in self.text[start : end or self.reader.pointer]

    def _ends_here(self, end: int, key: bool) -> bool:  # noqa: FBT001
        """Tell whether nothing stands between the end of a quoted text or a flow collection and what may follow it."""
        at = _SPACES.match(self.text, end).end()  # type: ignore[union-attr]
        character = self.text[at : at + 1]
        if character in {"", "\n", "\t"} or (character == "#" and at > end):
            return True
        return character in ",]}:" if self.flow_level else key and self._colon(at)

    def _quote(self, code: str, start: int, end: int, message: str, at: int | None = None) -> None:
        """Report that `text[start:end]` must be quoted to be one text; the finding stands at `at`."""
        text = self.text[start:end].rstrip()
        at = start if at is None else at
        self.report(code, at, at + 1, message, inline=quoting(text), follows=True)
