"""Packs with one fault each, made from those that are shipped: a rule or line is added, and `§` marks where it is wrong."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ledgercli.validation import validate
from tests import seeded_elsewhere

PROJECT = Path(__file__).resolve().parents[1]
MARK = "§"


@dataclass(frozen=True)
class World:
    """A shipped pack and the files that it is checked with."""

    pack: str
    toolset: str
    paths: tuple[str, ...]


@dataclass(frozen=True)
class Fault:
    """A file with one fault.

    Arguments:
        world: what is checked.
        code: what is to be found.
        file: the file that is changed.
        before: the text that `after` takes the place of; empty: `after` is added at the end.
        after: with `§` in the line that is at fault.

    """

    world: str
    code: str
    file: str
    before: str
    after: str

    @property
    def name(self) -> str:
        return f"{self.world}-{self.code}"


_SHOP = "fixtures/toolsets/shop.tools.yaml"
_AIRLINE = "policies/airline.tools.yaml"
_WEATHER = "fixtures/scenarios/weather.tools.yaml"
WORLDS = {
    "weather": World("policies/weather.yaml", _WEATHER, ("fixtures/scenarios/weather.yaml", "fixtures/scenarios/weather.cases.yaml")),
    "support": World("policies/support.yaml", _SHOP, ("fixtures/scenarios/shop-balance.yaml", "fixtures/scenarios/shop-zh.yaml", "fixtures/cases/support.cases.yaml")),
    "loops": World("policies/loops.yaml", _SHOP, ("fixtures/cases/loops.cases.yaml", "policies/loops.yaml")),
    "confirm": World("policies/confirm.yaml", _SHOP, ("fixtures/cases/confirm.cases.yaml", "policies/confirm.yaml")),
    "airline": World("policies/airline.yaml", _AIRLINE, ("fixtures/cases/airline.cases.yaml",)),
}  # fmt: skip


def _rule(*lines: str) -> str:
    return "\n  - name: seeded\n" + "".join(f"    {line}\n" for line in lines)


#: Rules by pack: code, and the lines of the rule; a first line that begins with `name` takes the place of the name.
_RULES: dict[str, list[tuple[str, tuple[str, ...]]]] = {
    "weather": [
        ("never-applies", ("tools: [get_weather]", "condition: §action.tool == 'give_suggestion'", "check: action.args.location != ''")),
        ("never-applies", ("tools: [get_weather]", "condition: §action.access == 'write'", "check: action.args.location != ''")),
        ("never-applies", ("tools: [get_weather]", "condition: §action.args.location == 'A' && action.args.location == 'B'", "check: has(state.facts.weather)")),
        ("never-applies", ("tools: [give_suggestion]", "condition: §action.args.temperature > 40 && !(action.args.temperature >= 30)", "check: has(state.facts.weather)")),
        ("never-applies", ("tools: [give_suggestion]", 'condition: §"!(has(state.facts.weather) || !has(state.facts.weather))"', "check: action.args.temperature < 60.0")),
        ("never-applies", ("condition: §action.tool == 'finish' && action.access == 'write'", "check: has(state.facts.weather)")),
        ("never-applies", ("tools: [get_weather]", "condition: §action.args.location in ['A', 'B'] && action.args.location in ['C', 'D']", "check: has(state.facts.weather)")),
        ("never-applies", ("tools: [get_weather]", "condition: §\"action.args.location.startsWith('A') && action.args.location.startsWith('B')\"", "check: has(state.facts.weather)")),
        ("never-applies", ("tools: §[]", "check: has(state.facts.weather)")),
        ("check-always-holds", ("tools: [get_weather]", "check: §count_calls(state.ledger, 'get_weather') >= 0")),
        ("check-always-holds", ("tools: [get_weather]", "check: §size(action.args.location) > -1")),
        ("check-always-holds", ("tools: [get_weather]", "check: §action.args.location == 'A' || action.args.location != 'A'")),
        ("check-always-holds", ("tools: [get_weather]", "check: §action.tool in ['get_weather', 'give_suggestion']")),
        ("check-always-holds", ("tools: [give_suggestion]", "condition: action.args.temperature < 10.0", "check: §action.args.temperature < 20.0")),
        ("check-never-holds", ("tools: [get_weather]", "check: §repeats(state.ledger, 'get_weather') < 0")),
        ("check-never-holds", ("tools: [give_suggestion]", "check: §action.args.temperature < 0.0 && action.args.temperature > 50.0")),
        ("hidden-rule", ("tools: [get_weather]", "check: repeats(state.ledger, 'get_weather') < 4")),
        ("repeated-rule", ("tools: [get_weather]", "check: 'repeats(state.ledger, \"get_weather\") < 1'")),
        ("repeated-rule", ("tools: [get_weather]", "check: '!(repeats(state.ledger, \"get_weather\") != 0)'")),
        ("message-names-unknown", ("tools: [get_weather]", "check: count_calls(state.ledger, 'get_weather') < 9", "on_fail: §Call give_sugestion first.")),
        ("message-names-unknown", ("tools: [get_weather]", "check: count_calls(state.ledger, 'get_weather') < 9", "on_fail:", "  error: No.", "  hint: §The list constraints.sensitive_places says where.")),
    ],
    "support": [
        ("never-applies", ("tools: [create_return]", "condition: §action.args.amount > 100 && action.args.amount < 50", "check: state.flags.payment_failed")),
        ("never-applies", ("tools: [create_return]", "condition: §action.args.amount < 0", "check: state.flags.payment_failed")),
        ("never-applies", ("tools: [notify]", "condition: §\"action.args.channel != 'sms' && action.args.channel != 'email'\"", "check: '!state.flags.payment_failed'")),
        ("never-applies", ("condition: §sensitive && action.tool == 'notify'", "check: '!state.flags.payment_failed'")),
        ("never-applies", ("tools: [transfer]", "condition: §'\"charge\" in action.tags'", "check: action.args.amount < 9000")),
        ("never-applies", ("tools: [purchase]", "condition: §action.args.quantity in [0, -1]", "check: '!state.flags.payment_failed'")),
        ("never-applies", ("tools: [transfer]", "condition: §state.flags.payment_failed && !state.flags.payment_failed", "check: action.args.amount < 9000")),
        ("never-applies", ("tools: [create_return]", "condition: §state.facts.user_role == 'guest' && state.facts.user_role in ['admin', 'customer']", "check: action.args.amount < 9000")),
        ("check-always-holds", ("tools: [transfer]", "check: §action.args.amount >= 0")),
        ("check-always-holds", ("tools: [transfer]", "check: §'!(action.args.amount < -5)'")),
        ("check-always-holds", ("tools: [notify]", "check: §action.args.channel in ['email', 'sms']")),
        ("check-always-holds", ("condition: action.access == 'write'", "check: §\"state.facts.user_role in ['guest', 'customer', 'admin']\"")),
        ("check-always-holds", ("tools: [purchase]", 'check: §"action.args.quantity > 0 ? true : state.flags.payment_failed"')),
        ("check-always-holds", ("tools: [create_return]", "condition: action.args.amount > 1000", "check: §action.args.amount != 500")),
        ("check-never-holds", ("tools: [purchase]", "check: §action.args.quantity < 1")),
        ("check-never-holds", ("tools: [transfer]", "condition: action.args.amount > 5000", "check: §action.args.amount < 100")),
        ("hidden-rule", ("tools: [create_return]", "check: action.args.amount <= 1000", "on_fail: {error: Much., effect: require_approval}")),
        ("hidden-rule", ("tools: [create_return]", "condition: action.args.amount > 600", "check: '!(action.args.amount >= 700)'", "on_fail: {error: Much., effect: warn}")),
        ("hidden-rule", ("tools: [purchase, view_balance]", "check: state.facts.user_authenticated")),
        ("hidden-rule", ("tools: [create_return]", "condition: action.args.amount > 50", "check: state.facts.orders[action.args.order_id].total >= action.args.amount")),
        ("repeated-rule", ("tools: [create_return]", "check: '!(action.args.amount > state.facts.orders[action.args.order_id].total)'")),
        ("repeated-rule", ("condition: \"'charge' in action.tags\"", "check: state.flags.payment_failed == false")),
        ("repeated-rule", ("tools: [purchase, view_balance, update_profile]", "check: state.facts.user_authenticated")),
        ("deadlock", ("tools: [authenticate_user]", "check: §state.facts.user_authenticated")),
        ("deadlock", ("tools: [verify_account]", "check: §action.args.account in state.facts.accounts")),
        ("deadlock", ("tools: [get_order]", "check: §\"succeeded(state.ledger, 'get_order')\"")),
        ("deadlock", ("tools: [update_payment_method, authenticate_user]", "check: §state.facts.user_role in ['customer', 'admin']")),
        ("impossible-value", ("tools: [notify]", "check: state.facts.notified != §false")),
        ("impossible-value", ("tools: [transfer]", "check: source(state.facts.accounts[action.args.account]).tool != §'get_order'")),
        ("impossible-value", ("tools: [transfer]", "check: source(state.facts.user).tool in ['authenticate_user', §'verify_account']")),
        ("trusts-user", ("tools: [give_credit]", "check: §state.facts.customer_said == 'the parcel was late'")),
        ("trusts-user", ("tools: [give_credit]", "condition: §\"state.facts.customer_said.contains('late')\"", "check: action.args.amount < 9")),
        ("message-names-unknown", ("tools: [transfer]", "check: action.args.amount < 9000", "on_fail: §Call verify_acount first.")),
        ("message-names-unknown", ("tools: [transfer]", "check: action.args.amount < 9000", "on_fail: §Set facts.user_rol before.")),
        ("message-names-unknown", ("tools: [transfer]", "check: action.args.amount < 9000", "on_fail: {error: No., hint: §call purchse first}")),
        ("repeated-tool", ("tools: [transfer, §transfer]", "check: action.args.amount < 9000")),
        ("repeated-part", ("tools: [transfer]", "check: action.args.amount < 9000 && §9000 > action.args.amount")),
    ],
    "loops": [
        ("never-applies", ("condition: §count_calls(state.ledger, action.tool) < 0", "check: count_denied(state.ledger, action.tool) < 9")),
        ("never-applies", ("condition: §repeats(state.ledger, action) > 5 && repeats(state.ledger, action) <= 3", "check: count_denied(state.ledger, action.tool) < 9")),
        ("never-applies", ("condition: §\"action.access != 'read' && action.access != 'write'\"", "check: count_denied(state.ledger, action.tool) < 9")),
        ("check-always-holds", ("check: §count_failures(state.ledger, action.tool) >= 0")),
        ("check-always-holds", ('check: §"succeeded(state.ledger, action.tool) || !succeeded(state.ledger, action.tool)"')),
        ("check-never-holds", ("check: §count_denied(state.ledger, action.tool) <= -1")),
        ("hidden-rule", ("condition: action.access == 'write'", "check: count_calls(state.ledger, action.tool) < state.constraints.max_calls_per_tool")),
        ("repeated-rule", ("check: '!(count_calls(state.ledger, action.tool) >= state.constraints.max_calls_per_tool)'")),
        ("repeated-rule", ("check: state.constraints.max_same_calls > repeats(state.ledger, action)")),
        ("message-names-unknown", ("check: count_failures(state.ledger, action.tool) < 99", "on_fail: §Raise constraints.max_failures first.")),
        ("message-names-unknown", ("check: count_failures(state.ledger, action.tool) < 99", "on_fail: §Call ask_for_help first.")),
    ],
    "confirm": [
        ("never-applies", ("condition: §action.access == 'write' && action.access == 'read'", "check: confirmed(state.ledger, action)")),
        ("never-applies", ("condition: §confirmed(state.ledger, action) && !confirmed(state.ledger, action)", "check: state.step < 9")),
        ("check-always-holds", ("check: §state.step >= 0")),
        ("check-always-holds", ("condition: confirmed(state.ledger, action)", 'check: §"confirmed(state.ledger, action) || state.step < 4"')),
        ("check-never-holds", ("check: §state.step < 0")),
        ("repeated-rule", ("condition: '!(action.access == \"read\")'", "check: confirmed(state.ledger, action) == true")),
        ("repeated-rule", ("check: \"action.access != 'write' || confirmed(state.ledger, action)\"")),
        ("hidden-rule", ("condition: action.access == 'write' && state.step > 3", "check: confirmed(state.ledger, action)")),
        ("message-names-unknown", ("check: state.step < 99", "on_fail: §Call confirm_this_call first.")),
    ],
    "airline": [
        ("never-applies", ("tools: [book_reservation]", "condition: §action.args.cabin == 'economy' && action.args.cabin != 'economy'", "check: action.args.total_baggages < 99")),
        ("never-applies", ("tools: [book_reservation]", "condition: §\"!(action.args.insurance in ['yes', 'no'])\"", "check: action.args.total_baggages < 99")),
        ("never-applies", ("tools: [send_certificate]", "condition: §action.args.amount >= 500.0 && action.args.amount <= 100.0", "check: customer_known")),
        ("never-applies", ("tools: [cancel_reservation]", "condition: §action.tool.startsWith('book')", "check: owner_known")),
        ("never-applies", ("tools: [cancel_reservation]", "condition: §\"reservation.cabin == 'business' && reservation.cabin in ['economy', 'basic_economy']\"", "check: owner_known")),
        ("check-always-holds", ("tools: [book_reservation]", "check: §size(action.args.passengers) >= 0")),
        ("check-always-holds", ("tools: [book_reservation]", "check: §\"action.args.flight_type == 'one_way' || action.args.flight_type == 'round_trip'\"")),
        ("check-always-holds", ("tools: [book_reservation]", "check: §\"action.args.cabin == 'business' ? action.args.cabin != 'economy' : action.args.cabin != 'business'\"")),
        ("check-never-holds", ("tools: [send_certificate]", "check: §action.args.amount < 10.0 && action.args.amount > 20.0")),
        ("check-never-holds", ("tools: [book_reservation]", "condition: action.args.cabin == 'economy'", "check: §\"action.args.cabin in ['business', 'basic_economy']\"")),
        ("hidden-rule", ("tools: [book_reservation]", "condition: action.args.cabin == 'economy'", "check: state.constraints.max_passengers >= size(action.args.passengers)")),
        ("hidden-rule", ("tools: [update_reservation_baggages]", "check: '!(action.args.total_baggages < reservation.total_baggages)'", "on_fail: {error: No., effect: warn}")),
        ("repeated-rule", ("tools: [update_reservation_passengers]", "check: size(reservation.passengers) == size(action.args.passengers)")),
        ("repeated-rule", ("tools: [cancel_reservation]", "check: 'reservation.flights.all(leg, !(leg.date < today))'")),
        ("repeated-rule", ("tools: [update_reservation_flights]", "check: '!bought_flights.exists(f, f.date < today)'")),
        ("message-names-unknown", ("tools: [cancel_reservation]", "check: owner_known", "on_fail: §Call get_users_detail first.")),
        ("repeated-tool", ("tools: [cancel_reservation, §cancel_reservation]", "check: owner_known")),
    ],
}  # fmt: skip

#: Other edits: world, code, file, what is replaced, by what.
_EDITS: list[tuple[str, str, str, str, str]] = [
    ("weather", "unguarded-write", _WEATHER, "  give_suggestion:\n", "  §erase:\n    description: Erases it.\n\n  give_suggestion:\n"),
    ("weather", "unguarded-write", _WEATHER, "  give_suggestion:\n    description: What to wear in such weather.\n    access: read", "  §give_suggestion:\n    description: What to wear in such weather.\n    access: write"),
    ("weather", "unread-fact", _WEATHER, "        facts.location: action", "        §facts.humid: result.data.humidity\n        facts.location: action"),
    ("weather", "unread-flag", _WEATHER, "        facts.location: action", "        §flags.looked: true\n        facts.location: action"),
    ("weather", "unread-constraint", "fixtures/scenarios/weather.yaml", "constraints: {", "constraints: {§warm: 25, "),
    ("support", "unread-fact", _SHOP, "set: {facts.balance: result.data.balance}", "set: {facts.balance: result.data.balance, §facts.seen: true}"),
    ("support", "unread-flag", _SHOP, "set: {facts.balance: result.data.balance}", "set: {facts.balance: result.data.balance, §flags.seen: true}"),
    ("support", "unused-define", "policies/support.yaml", "define:\n", "define:\n  §costly: action.tool in ['purchase', 'charge']\n"),
    ("support", "unread-constraint", "policies/support.yaml", "constraints: {require_auth", "constraints: {§most: 3, require_auth"),
    ("airline", "unguarded-write", _AIRLINE, "  cancel_reservation:\n", "  §upgrade:\n    description: A better seat.\n\n  cancel_reservation:\n"),
    ("airline", "unread-fact", _AIRLINE, "          facts.reservations[result.data.reservation_id]: result.data\n", "          facts.reservations[result.data.reservation_id]: result.data\n          §facts.booked: true\n"),
    ("airline", "unused-define", "policies/airline.yaml", "define:\n", "define:\n  §cheap: action.args.amount < 10.0\n"),
    ("airline", "never-applies", "policies/airline.yaml", "  pays_with_gift_card: |\n    action", "  pays_with_gift_card: |\n    §action.args.payment_id == '' && action.args.payment_id == ' ' && action"),
    ("loops", "unread-constraint", "policies/loops.yaml", "  max_same_calls: 3\n", "  max_same_calls: 3\n  §max_different_calls: 30\n"),
    ("loops", "unread-name", "policies/loops.yaml", "vocabulary: {}", "vocabulary: {facts: {§vip: 'bool?'}}"),
    ("confirm", "unread-name", "policies/confirm.yaml", "vocabulary: {}", "vocabulary: {flags: [§vip]}"),
]  # fmt: skip


def faults() -> Iterator[Fault]:
    """Every pack with a fault."""
    for world, rules in (*_RULES.items(), *seeded_elsewhere.RULES.items()):
        for code, lines in rules:
            text = _rule(*((lines,) if isinstance(lines, str) else lines))
            if MARK not in text:
                text = text.replace("name: ", f"name: {MARK}")
            yield Fault(world, code, WORLDS[world].pack, "", text)
    for world, code, file, before, after in _EDITS:
        yield Fault(world, code, file, before, after)


def plant(fault: Fault, folder: Path) -> tuple[Path, int]:
    """Write the shipped files with the fault into a folder; return the file and line at fault."""
    for name in ("policies", "fixtures"):
        shutil.copytree(PROJECT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    file = folder / fault.file
    text = file.read_text(encoding="utf-8")
    assert fault.before in text, fault.before
    changed = text.replace(fault.before, fault.after, 1) if fault.before else text + fault.after
    line = changed[: changed.index(MARK)].count("\n") + 1
    file.write_text(changed.replace(MARK, ""), encoding="utf-8")
    return file, line


def findings(world: str, folder: Path) -> set[tuple[str, str, int]]:
    """What `validate` says: code, file, line."""
    found = validate([str(folder / path) for path in WORLDS[world].paths])
    return {(one.code, str(Path(one.file).resolve().relative_to(folder.resolve())), one.line) for one in found.problems}
