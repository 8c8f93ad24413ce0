"""The waist: what is on disk when, who may run, and that nobody changes the books afterwards."""

from __future__ import annotations

import asyncio
import math
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import ledgercli
from ledgercli import BlockedError, Guard, LedgerCliError, Result, load_pack, load_toolset
from ledgercli.errors import LedgerWriteError, OutputExistsError
from ledgercli.records import Verdict
from tests.books import TOOLS, book, books_of, guard, kept, lines_of, replayed

NO_PAY = """
    pack: p
    rules:
      - {name: never, tools: [pay], check: "false", on_fail: {error: No., hint: Look first.}}
"""
ASKS = """
    pack: p
    rules:
      - name: large
        condition: action.access == 'write'
        check: action.args.amount < 10.0
        tools: [pay, give]
        on_fail: {error: Large., effect: require_approval}
"""
MORE = (
    TOOLS
    + """
      give:
        args: {amount: {type: number}, note: {type: string, default: ""}}
      stay:
        args: {n: {type: integer}}
"""
)


def ledger_of(folder: Path) -> Path:
    return folder / "run.ledger.jsonl"


def story(lines: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return [(line["kind"], line.get("step"), line.get("outcome")) for line in lines]


# ---- the public door


def test_the_public_names_are_there_and_cost_nothing_until_asked_for() -> None:
    code = (
        "import sys, ledgercli; loaded = [m for m in sys.modules if m.startswith('ledgercli.')];"
        "assert loaded == [], loaded; from ledgercli import Guard, load_pack; print(ledgercli.__version__)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said == ledgercli.__version__ + "\n"
    for name in ledgercli.__all__:
        assert name in dir(ledgercli)
        assert getattr(ledgercli, name).__name__ == name
    with pytest.raises(AttributeError, match="has no attribute 'Gaurd'"):
        ledgercli.Gaurd  # noqa: B018


def test_a_guard_is_made_from_paths_or_from_what_they_hold(tmp_path: Path) -> None:
    book(tmp_path, NO_PAY)
    pack, toolset = tmp_path / "pack0.yaml", tmp_path / "shop.tools.yaml"
    for packs, tools in (([pack], toolset), ([load_pack(pack)], load_toolset(toolset)), ([str(pack)], str(toolset))):
        made = Guard(packs, tools, {"facts": {"vip": True}, "task": "t", "constraints": {"n": 1}})
        assert made.check("pay", {"amount": 1}).reason == "No."
        assert (made.state.facts["vip"], made.state.tree["task"], made.state.tree["constraints"]) == (
            True,
            "t",
            {"n": 1},
        )


def test_a_guard_with_a_compiled_rulebook_takes_the_parts_of_a_state_too(tmp_path: Path) -> None:
    made = guard(book(tmp_path), state={"facts": {"vip": True}, "flags": {"logged_in": True}})
    assert made.state.tree["facts"] == {"orders": {}, "vip": True}
    assert made.state.tree["flags"] == {"logged_in": True, "payment_failed": False}


def test_a_part_that_no_state_has_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LedgerCliError, match="no part fact; there is facts"):
        guard(book(tmp_path), state={"fact": {}})


def test_a_guard_needs_a_toolset() -> None:
    with pytest.raises(LedgerCliError, match="needs a toolset"):
        Guard()


def test_a_ledger_that_exists_is_not_overwritten(tmp_path: Path) -> None:
    ledger_of(tmp_path).write_text("mine")
    with pytest.raises(OutputExistsError):
        guard(book(tmp_path), ledger_of(tmp_path))
    assert ledger_of(tmp_path).read_text() == "mine"


# ---- check and record


def test_a_read_is_one_line_and_a_write_is_two(tmp_path: Path) -> None:
    books = guard(book(tmp_path), ledger_of(tmp_path))
    look = books.check("look", {"id": "W1"})
    assert story(lines_of(ledger_of(tmp_path))) == [("open", None, None)]
    books.record(look, {"status": "new"})
    pay = books.check("pay", {"amount": 5}, call_id="c1")
    assert story(lines_of(ledger_of(tmp_path)))[2:] == [("intent", 2, None)]
    state = books.record(pay, "fine")
    books.close("completed", "done")
    lines = kept(ledger_of(tmp_path))
    assert story(lines)[1:] == [("step", 1, "ok"), ("intent", 2, None), ("step", 2, "ok"), ("close", None, None)]
    assert lines[3]["action"] == {"tool": "pay", "args": {"amount": 5}, "call_id": "c1"}
    assert state.facts["paid"] == 5
    assert replayed(lines) == books_of(books.state)
    assert (lines[-1]["answer"], lines[-1]["steps"], books.steps) == ("done", 2, 2)


def test_a_denial_is_on_disk_before_check_returns(tmp_path: Path) -> None:
    books = guard(book(tmp_path, NO_PAY), ledger_of(tmp_path))
    verdict = books.check("pay", {"amount": 5})
    line = lines_of(ledger_of(tmp_path))[-1]
    assert (verdict.runs, line["outcome"], line["result"], line["verdict"]["reason"]) == (False, "denied", None, "No.")
    assert line["state_diff"] == {"error": "pay was refused: No."}
    assert books.history.count_denied("pay") == 1
    with pytest.raises(LedgerCliError, match="step 1 is not waiting for a result"):
        books.record(verdict, "anyway")


def test_the_next_executed_step_clears_what_a_denial_left(tmp_path: Path) -> None:
    books = guard(book(tmp_path, NO_PAY))
    books.check("pay", {"amount": 5})
    books.record(books.check("look", {"id": "W1"}), {})
    assert books.state.tree["error"] is None


def test_a_result_is_recorded_once(tmp_path: Path) -> None:
    books = guard(book(tmp_path), ledger_of(tmp_path))
    verdict = books.check("pay", {"amount": 5})
    books.record(verdict, "fine")
    with pytest.raises(LedgerCliError, match="step 1 is not waiting"):
        books.record(verdict, "again")
    with pytest.raises(LedgerCliError, match="step 9 is not waiting"):
        books.record(Verdict("allow", step=9), "never checked")
    books.close()
    assert story(kept(ledger_of(tmp_path)))[1:3] == [("intent", 1, None), ("step", 1, "ok")]


def test_nothing_happens_after_the_close(tmp_path: Path) -> None:
    books = guard(book(tmp_path, ASKS, tools=MORE), ledger_of(tmp_path))
    waiting = books.check("pay", {"amount": 50})
    head = books.close()
    assert books.close("failed") == head
    for late in (
        lambda: books.check("look", {"id": "W1"}),
        lambda: books.said("hello"),
        lambda: books.approve(waiting.step, yes=True, by="mia"),
        lambda: books.record(waiting, 1),
    ):
        with pytest.raises(LedgerCliError):
            late()
    assert story(kept(ledger_of(tmp_path)))[1:] == [("step", 1, "waiting"), ("close", None, None)]


def test_results_are_correlated_by_step_and_diffs_apply_in_the_order_of_the_lines(tmp_path: Path) -> None:
    books = guard(book(tmp_path), ledger_of(tmp_path))
    first = books.check("look", {"id": "W1"}, call_id="same")
    second = books.check("look", {"id": "W1"}, call_id="same")
    books.record(second, {"n": 2})
    books.record(first, {"n": 1})
    books.close()
    lines = kept(ledger_of(tmp_path))
    assert [(line["step"], line["result"]["data"]["n"]) for line in lines[1:3]] == [(2, 2), (1, 1)]
    assert books.state.facts["orders"]["W1"]["n"] == 1
    assert (replayed(lines), books.state.step) == (books_of(books.state), 2)


def test_what_was_not_recorded_is_unknown_for_writes_and_cancelled_for_reads(tmp_path: Path) -> None:
    books = guard(book(tmp_path), ledger_of(tmp_path))
    books.check("pay", {"amount": 5})
    books.check("look", {"id": "W1"})
    books.close("interrupted")
    assert story(kept(ledger_of(tmp_path)))[2:4] == [("step", 1, "unknown"), ("step", 2, "cancelled")]
    assert (books.history.count_calls("pay"), books.history.count_calls("look")) == (1, 0)


@pytest.mark.parametrize(("outcome", "calls"), [("cancelled", 0), ("unknown", 1)])
def test_an_outcome_without_result_runs_no_transition_and_is_no_failure(
    tmp_path: Path, outcome: Any, calls: int
) -> None:
    books = guard(book(tmp_path), ledger_of(tmp_path))
    books.record(books.check("pay", {"amount": 5}), outcome=outcome)
    assert "paid" not in books.state.facts
    assert (books.history.count_calls("pay"), books.history.count_failures("pay")) == (calls, 0)
    books.close()
    line = kept(ledger_of(tmp_path))[2]
    assert (line["outcome"], line["result"]) == (outcome, None)
    assert "state_diff" not in line


def test_a_guard_without_a_ledger_judges_and_changes_all_the_same(tmp_path: Path) -> None:
    told: list[str] = []
    books = guard(book(tmp_path), on_line=lambda line: told.append(line["kind"]))
    books.record(books.check("pay", {"amount": 5}), "fine")
    assert (books.state.facts["paid"], books.head, books.close()) == (5, None, None)
    assert told == ["open", "intent", "step", "close"]


def test_whoever_is_told_may_fail_without_harm_to_the_books(tmp_path: Path) -> None:
    def fails(line: dict[str, Any]) -> None:
        if line["kind"] in ("intent", "step"):
            raise BrokenPipeError

    books = guard(book(tmp_path), ledger_of(tmp_path), on_line=fails)
    with pytest.raises(BrokenPipeError):
        books.check("pay", {"amount": 5})
    with pytest.raises(BrokenPipeError):
        books.check("look", {"id": 5})
    with pytest.raises(BrokenPipeError):
        books.close("error")
    assert story(kept(ledger_of(tmp_path)))[1:] == [
        ("intent", 1, None), ("step", 2, "denied"), ("step", 1, "unknown"), ("close", None, None),
    ]  # fmt: skip


# ---- nobody changes the books from outside


def test_what_a_tool_returned_may_be_changed_afterwards_without_changing_the_state(tmp_path: Path) -> None:
    books = guard(book(tmp_path), ledger_of(tmp_path))
    order: dict[str, Any] = {"status": "new", "lines": [1], "pair": (1, 2)}
    books.record(books.check("look", {"id": "W1"}), order)
    order["status"] = "cancelled"
    order["lines"].append(2)
    assert books.state.tree["facts"]["orders"]["W1"] == {"status": "new", "lines": [1], "pair": [1, 2]}
    books.close()
    assert replayed(kept(ledger_of(tmp_path))) == books_of(books.state)


def test_arguments_and_first_facts_may_be_changed_afterwards_too(tmp_path: Path) -> None:
    facts: dict[str, Any] = {"user": {"name": "mia"}}
    books = guard(book(tmp_path), ledger_of(tmp_path), state={"facts": facts})
    facts["user"]["name"] = "lei"
    args: dict[str, Any] = {"amount": 5}
    verdict = books.check("pay", args)
    args["amount"] = 5000
    books.record(verdict, "fine")
    books.close()
    lines = kept(ledger_of(tmp_path))
    assert (lines[1]["action"], lines[2]["action"]) == (lines[2]["action"], {"tool": "pay", "args": {"amount": 5}})
    assert (books.state.facts["user"]["name"], books.state.facts["paid"]) == ("mia", 5)
    assert books.history.count_calls("pay", {"amount": 5}) == 1


# ---- invoke


def test_invoke_checks_runs_and_records(tmp_path: Path) -> None:
    books = guard(book(tmp_path), ledger_of(tmp_path))
    assert books.invoke("look", {"id": "W1"}, lambda **args: args) == {"id": "W1"}
    assert books.state.facts["orders"] == {"W1": {"id": "W1"}}


def test_invoke_of_what_is_refused_raises_and_runs_nothing(tmp_path: Path) -> None:
    ran: list[int] = []
    books = guard(book(tmp_path, NO_PAY), ledger_of(tmp_path))
    with pytest.raises(BlockedError) as caught:
        books.invoke("pay", {"amount": 1}, lambda **_: ran.append(1))
    assert (str(caught.value), caught.value.fix) == ("pay was refused: No.", "Look first.")
    assert isinstance(caught.value.verdict, Verdict)
    assert caught.value.verdict.step == 1
    assert ran == []


def test_an_exception_is_recorded_as_a_failure_and_goes_on(tmp_path: Path) -> None:
    def raises(**_: Any) -> None:
        raise ValueError("no funds")

    books = guard(book(tmp_path), ledger_of(tmp_path))
    with pytest.raises(ValueError, match="no funds"):
        books.invoke("pay", {"amount": 1}, raises)
    books.close()
    line = kept(ledger_of(tmp_path))[2]
    assert (line["outcome"], line["result"]) == ("error", {"success": False, "error": "ValueError: no funds"})
    assert books.state.tree["flags"]["payment_failed"] is True


@pytest.mark.parametrize(
    ("tool", "args", "outcome"), [("pay", {"amount": 1}, "unknown"), ("look", {"id": "W1"}, "cancelled")]
)
def test_an_interruption_leaves_a_write_unknown_and_a_read_cancelled(
    tmp_path: Path, tool: str, args: dict[str, Any], outcome: str
) -> None:
    def interrupts(**_: Any) -> None:
        raise KeyboardInterrupt

    books = guard(book(tmp_path), ledger_of(tmp_path))
    with pytest.raises(KeyboardInterrupt):
        books.invoke(tool, args, interrupts)
    books.close("interrupted")
    assert kept(ledger_of(tmp_path))[-2]["outcome"] == outcome


def test_the_asynchronous_door_is_the_same(tmp_path: Path) -> None:
    async def looks(**args: str) -> dict[str, str]:
        await asyncio.sleep(0)
        return args

    async def raises(**_: Any) -> None:
        raise ValueError("no")

    async def run() -> None:
        assert await books.ainvoke("look", {"id": "W1"}, looks) == {"id": "W1"}
        verdict = await books.acheck("pay", {"amount": 5})
        assert (await books.arecord(verdict, "fine")).facts["paid"] == 5
        with pytest.raises(ValueError, match="no"):
            await books.ainvoke("pay", {"amount": 7}, raises)
        with pytest.raises(BlockedError, match="There is no tool play"):
            await books.ainvoke("play", {}, raises)

    books = guard(book(tmp_path), ledger_of(tmp_path))
    asyncio.run(run())
    books.close()
    assert [line["outcome"] for line in kept(ledger_of(tmp_path)) if line["kind"] == "step"] == [
        "ok",
        "ok",
        "error",
        "denied",
    ]


def test_a_cancelled_task_leaves_a_write_unknown(tmp_path: Path) -> None:
    books = guard(book(tmp_path), ledger_of(tmp_path))

    async def run() -> None:
        started = asyncio.Event()

        async def pays(**_: Any) -> None:
            started.set()
            await asyncio.sleep(60)

        task = asyncio.create_task(books.ainvoke("pay", {"amount": 5}, pays))
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())
    books.close("interrupted")
    assert kept(ledger_of(tmp_path))[2]["outcome"] == "unknown"


def test_parallel_calls_are_told_apart_and_leave_one_whole_ledger(tmp_path: Path) -> None:
    books = guard(book(tmp_path, NO_PAY, tools=MORE), ledger_of(tmp_path))

    def work(worker: int) -> None:
        for number in range(12):
            key = f"{worker}-{number}"
            if number % 3 == 0:
                assert not books.check("pay", {"amount": worker}).runs
            elif number % 3 == 1:
                books.invoke("look", {"id": key}, lambda **args: {"by": args["id"]})
            else:
                verdict = books.check("stay", {"n": worker * 100 + number}, call_id="same")
                books.record(verdict, {"n": worker * 100 + number})

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    books.close()
    lines = kept(ledger_of(tmp_path))
    steps = [line for line in lines if line["kind"] == "step"]
    assert sorted(line["step"] for line in steps) == list(range(1, 97))
    for line in steps:
        if line["action"]["tool"] == "stay":
            assert line["result"]["data"] == line["action"]["args"]
        if line["action"]["tool"] == "look":
            assert line["result"]["data"] == {"by": line["action"]["args"]["id"]}
    assert replayed(lines) == books_of(books.state)
    assert len(books.state.facts["orders"]) == 32
    assert books.history.count_denied("pay") == 32


# ---- approvals


def asking(folder: Path, pack: str = ASKS, **more: Any) -> Guard:
    return guard(book(folder, pack, tools=MORE), ledger_of(folder), **more)


def test_a_call_that_needs_approval_waits_and_runs_once_after_a_yes(tmp_path: Path) -> None:
    books = asking(tmp_path)
    first = books.check("pay", {"amount": 50})
    assert (first.effect, first.runs, books.state.tree["error"]) == ("require_approval", False, None)
    books.approve(first.step, yes=True, by="mia", reason="a good customer")
    second = books.check("pay", {"amount": 50})
    assert (second.effect, second.runs, second.approval, second.step) == ("require_approval", True, 1, 2)
    books.record(second, "fine")
    assert not books.check("pay", {"amount": 50}).runs
    books.close()
    lines = kept(ledger_of(tmp_path))
    assert story(lines)[1:-1] == [
        ("step", 1, "waiting"), ("approval", 1, None), ("intent", 2, None), ("step", 2, "ok"), ("step", 3, "waiting"),
    ]  # fmt: skip
    assert {key: lines[2][key] for key in ("answer", "by", "reason")} == {
        "answer": "yes", "by": "mia", "reason": "a good customer",
    }  # fmt: skip
    assert books.history.count_denied("pay") == 0


def test_a_no_refuses_the_call_once(tmp_path: Path) -> None:
    books = asking(tmp_path)
    books.approve(books.check("pay", {"amount": 50}).step, yes=False, by="mia")
    refused = books.check("pay", {"amount": 50})
    assert (refused.effect, refused.reason) == ("deny", "Approval was refused. Large.")
    assert books.check("pay", {"amount": 50}).effect == "require_approval"
    books.close()
    assert story(kept(ledger_of(tmp_path)))[3] == ("step", 2, "denied")


@pytest.mark.parametrize(
    ("tool", "args"), [("pay", {"amount": 51}), ("pay", {"amount": 50, "note": "x"}), ("give", {"amount": 50})]
)
def test_a_yes_is_for_exactly_that_call(tmp_path: Path, tool: str, args: dict[str, Any]) -> None:
    books = asking(tmp_path)
    books.approve(books.check("pay", {"amount": 50}).step, yes=True, by="mia")
    assert not books.check(tool, args).runs
    assert books.check("pay", {"amount": 50}).runs


def test_a_yes_is_for_the_values_that_were_read(tmp_path: Path) -> None:
    pack = """
    pack: p
    rules:
      - {name: vip, tools: [pay], check: state.facts.vip == true, on_fail: {error: Ask., effect: require_approval}}
    """
    books = asking(tmp_path, pack, state={"facts": {"vip": False}})
    books.approve(books.check("pay", {"amount": 5}).step, yes=True, by="mia")
    books.record(books.check("login", {"user": "lei"}), {"vip": None})
    assert not books.check("pay", {"amount": 5}).runs


def test_an_approval_holds_though_time_and_steps_go_on(tmp_path: Path) -> None:
    pack = """
    pack: p
    rules:
      - name: slow
        tools: [pay]
        check: steps_since(state.ledger, 'look') > 5 && state.step > 9 && now > timestamp('2030-01-01T00:00:00Z')
        on_fail: {error: Ask., effect: require_approval}
    """
    from ledgercli.cel import Timestamp

    times = iter(range(100))
    books = Guard(rulebook=book(tmp_path, pack), clock=lambda: Timestamp(next(times) * 10**9))
    books.record(books.check("look", {"id": "W1"}), {})
    waits = books.check("pay", {"amount": 5})
    assert any(path.startswith("steps_since") for path in waits.reads)
    books.approve(waits.step, yes=True, by="mia")
    assert books.check("pay", {"amount": 5}).runs


def test_only_a_waiting_step_is_approved_and_only_once(tmp_path: Path) -> None:
    books = asking(tmp_path)
    step = books.check("pay", {"amount": 50}).step
    books.approve(step, yes=True, by="mia")
    for other in (step, 7):
        with pytest.raises(LedgerCliError, match="does not wait"):
            books.approve(other, yes=True, by="mia")


def test_in_a_recording_what_needs_approval_counts_as_denied(tmp_path: Path) -> None:
    books = asking(tmp_path, recorded=True)
    verdict = books.check("pay", {"amount": 50})
    assert (verdict.effect, verdict.runs) == ("require_approval", False)
    books.close()
    assert story(kept(ledger_of(tmp_path)))[1] == ("step", 1, "denied")
    assert books.state.tree["error"] == "pay was refused: Large."


# ---- limits


HOSTILE: list[tuple[str, Any, str]] = [
    ("nan", math.nan, "amount is nan"),
    ("infinity", math.inf, "amount is inf"),
    ("large", 2**64, "amount is an integer of more than 64 bits"),
    ("surrogate", "\ud800", "amount is text with a lone surrogate"),
    ("object", object(), "amount is of type object"),
    ("set", {1}, "amount is of type set"),
    ("keys", {1: 2}, "amount has the key 1"),
]


def deep(levels: int) -> Any:
    value: Any = []
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(("name", "value", "why"), [*HOSTILE, ("deep", deep(100), "is nested deeper than 64 levels")])
@pytest.mark.parametrize("books_kept", [True, False])
def test_arguments_that_no_ledger_holds_are_refused(
    tmp_path: Path, name: str, value: Any, why: str, books_kept: bool
) -> None:
    books = guard(book(tmp_path), ledger_of(tmp_path) if books_kept else None)
    verdict = books.check("pay", {"amount": value})
    assert (verdict.effect, [found.rule for found in verdict.failed]) == ("deny", ["bad_arguments"])
    assert why in str(verdict.reason)
    books.close()
    if books_kept:
        assert kept(ledger_of(tmp_path))[1]["action"] == {"tool": "pay", "args": {}}


@pytest.mark.parametrize("args", [None, [1], "text"])
def test_arguments_that_are_no_map_are_refused(tmp_path: Path, args: Any) -> None:
    books = guard(book(tmp_path), ledger_of(tmp_path))
    assert "they are no map" in str(books.check("pay", args).reason)
    books.close()
    kept(ledger_of(tmp_path))


def test_a_name_or_id_that_no_ledger_holds_is_written_as_far_as_it_can_be(tmp_path: Path) -> None:
    books = guard(book(tmp_path), ledger_of(tmp_path))
    assert not books.check("p\ud800y", {}, call_id="\udfff").runs
    books.close()
    assert kept(ledger_of(tmp_path))[1]["action"] == {"tool": "p?y", "args": {}, "call_id": "?"}


@pytest.mark.parametrize(("name", "value", "why"), HOSTILE)
@pytest.mark.parametrize("books_kept", [True, False])
def test_a_result_that_no_ledger_holds_is_a_failed_result_that_says_so(
    tmp_path: Path, name: str, value: Any, why: str, books_kept: bool
) -> None:
    books = guard(book(tmp_path), ledger_of(tmp_path) if books_kept else None)
    books.record(books.check("look", {"id": "W1"}), {"amount": value})
    assert str(books.state.tree["error"]).startswith(f"the result cannot be kept: result.data.{why}")
    assert books.state.facts["orders"] == {}
    books.close()
    if books_kept:
        assert kept(ledger_of(tmp_path))[1]["outcome"] == "error"


def test_a_result_that_is_too_long_is_a_failed_result_that_says_so(tmp_path: Path) -> None:
    books = guard(book(tmp_path), ledger_of(tmp_path))
    half = "x" * (9 * 1024 * 1024)  # it fits into a line once, but not beside the fact that is made of it
    books.record(books.check("look", {"id": "W1"}), half)
    books.record(books.check("look", {"id": "W1"}), {"k" * (17 * 1024 * 1024): 1})
    books.close("completed", half + half)
    lines = kept(ledger_of(tmp_path))
    assert [line["outcome"] for line in lines[1:3]] == ["error", "error"]
    assert all(line["result"]["error"].startswith("the result cannot be kept: ") for line in lines[1:3])
    assert lines[-1]["answer"] is None
    assert lines[-1]["error"].startswith("the answer cannot be kept: ")


def test_a_ledger_that_cannot_be_written_raises_and_the_tool_does_not_run(tmp_path: Path) -> None:
    books = guard(book(tmp_path), ledger_of(tmp_path))
    assert books._ledger is not None
    books._ledger.close()
    ran: list[int] = []
    with pytest.raises(LedgerWriteError):
        books.invoke("pay", {"amount": 5}, lambda **_: ran.append(1))
    assert ran == []
    assert books.steps == 0


# ---- people


def test_what_a_user_said_is_never_parsed(tmp_path: Path) -> None:
    books = guard(book(tmp_path), ledger_of(tmp_path))
    books.record(books.check("ask", {"question": "?"}), '{"success": false}')
    books.said("[1, 2] for #W1")
    books.close()
    lines = kept(ledger_of(tmp_path))
    assert lines[1]["result"] == {"success": True, "data": '{"success": false}'}
    assert (lines[2]["verdict"], lines[2]["action"], lines[2]["result"]["data"]) == (
        None,
        {"tool": "user", "args": {}},
        "[1, 2] for #W1",
    )
    assert books.history.from_user("#W1")
    assert books.history.from_user("success")


def test_an_answer_to_a_confirm_is_for_that_call_with_its_defaults(tmp_path: Path) -> None:
    books = guard(book(tmp_path))
    books.record(books.check("really", {"tool": "pay", "args": {"amount": 5}}), True)
    assert books.history.confirmed("pay", {"amount": 5, "note": ""})
    books.record(books.check("really", {"tool": "pay", "args": {"amount": 5, "note": "x"}}), "yes")
    assert not books.history.confirmed("pay", {"amount": 5, "note": "x"})
    books.record(books.check("really", {"tool": "play", "args": {}}), Result(success=False, error="nobody"))
    assert not books.history.confirmed("play", {})


def test_a_confirm_whose_arguments_are_no_map_confirms_nothing(tmp_path: Path) -> None:
    tools = "toolset: t\ntools:\n  really: {args: {tool: {}, args: {}}, run: {confirm: {}}}\n"
    books = guard(book(tmp_path, tools=tools), ledger_of(tmp_path))
    books.record(books.check("really", {"tool": "pay", "args": "all"}), True)
    books.close()
    kept(ledger_of(tmp_path))
    assert not books.history.confirmed("pay", {})


# ---- the end


def test_a_guard_closes_itself_with_the_status_that_the_run_has(tmp_path: Path) -> None:
    with guard(book(tmp_path), ledger_of(tmp_path)) as books:
        books.record(books.check("finish", {"answer": 42}))
    close = kept(ledger_of(tmp_path))[-1]
    assert (close["status"], close["answer"]) == ("completed", 42)


@pytest.mark.parametrize(
    ("raised", "status", "error"),
    [
        (None, "completed", None),
        (ValueError("x"), "error", "ValueError: x"),
        (KeyboardInterrupt(), "interrupted", "KeyboardInterrupt: "),
    ],
)
def test_leaving_a_guard_closes_the_ledger_however_it_is_left(
    tmp_path: Path, raised: BaseException | None, status: str, error: str | None
) -> None:
    def leave() -> None:
        with guard(book(tmp_path), ledger_of(tmp_path)) as books:
            books.check("pay", {"amount": 5})
            if raised is not None:
                raise raised

    ends(leave, raised)
    lines = kept(ledger_of(tmp_path))
    assert (lines[-1]["status"], lines[-1].get("error"), lines[-2]["outcome"]) == (status, error, "unknown")


def ends(call: Callable[[], None], raised: BaseException | None) -> None:
    if raised is None:
        call()
        return
    with pytest.raises(type(raised)):
        call()


def test_in_shadow_mode_everything_runs_and_the_line_says_what_would_have_failed(tmp_path: Path) -> None:
    rules = book(tmp_path, NO_PAY, shadow=True)
    books = guard(rules, ledger_of(tmp_path), shadow=True)
    books.record(books.check("pay", {"amount": 5}), "fine")
    books.record(books.check("play", {"x": 1}), "fine")
    books.close()
    lines = kept(ledger_of(tmp_path))
    assert lines[0]["mode"] == "shadow"
    shadowed = [[one["rule"] for one in line["verdict"]["shadowed"]] for line in lines if line["kind"] == "step"]
    assert shadowed == [["p/never"], ["unknown_tool"]]


def test_files_stand_in_the_first_line_whole_or_as_digests(tmp_path: Path) -> None:
    rules = book(tmp_path, NO_PAY)
    for reference in (False, True):
        file = tmp_path / f"{reference}.ledger.jsonl"
        guard(rules, file, reference=reference).close()
        files = kept(file)[0]["files"]
        assert [(one["kind"], one["name"]) for one in files] == [("pack", "p"), ("toolset", "shop")]
        assert all(("text" in one) is not reference for one in files)
