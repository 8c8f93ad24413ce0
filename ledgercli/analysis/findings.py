"""A finding of the analysis: what is shown, and what it is about, so that findings of several contexts can be compared.

Invariants:
* Two findings with one key say the same of the same thing, whatever their words.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Any

from ledgercli import cel
from ledgercli.analysis.codes import SEVERITIES
from ledgercli.analysis.context import Subject
from ledgercli.documents import Document, Place, Problem


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding.

    Arguments:
        problem: what is shown.
        key: what it is about; with its code and file the same in every context.
        alone: whether it depends on the tools, so that a pack which fits every toolset must have it by itself too.

    """

    problem: Problem
    key: tuple[Hashable, ...]
    alone: bool = False

    @property
    def identity(self) -> tuple[Hashable, ...]:
        """What it says of what."""
        return (self.problem.file, self.problem.code, *self.key)


def at_node(node: cel.Node, code: str, message: str, **more: Any) -> Problem:
    """Return a problem at a part of an expression."""
    label: Any = node.source.label  # every source of a file carries a document, a place and whether it is a key
    document, place, key = label
    found: Problem = document.problem_at(
        place, node.start, node.end, code, message, key=key, **{"severity": SEVERITIES[code], **more}
    )
    return found


def at_place(document: Document, place: Place, code: str, message: str, **more: Any) -> Problem:
    """Return a problem at a place of a file."""
    return document.problem(place, code, message, **{"severity": SEVERITIES[code], **more})


def of_rule(subject: Subject, problem: Problem, *about: Hashable, alone: bool = False) -> Finding:
    """Return a finding about a rule."""
    return Finding(problem, (subject.number, *about), alone)


def milder(problem: Problem) -> Problem:
    """Return a finding as a note."""
    return replace(problem, severity="note")


def shown(node: cel.Node, most: int = 60) -> str:
    """Return a part of an expression for a message, cut if it is long."""
    text = cel.render(node)
    return text if len(text) <= most else text[: most - 3] + "..."
