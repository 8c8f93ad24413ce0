"""The airline pack judged by hand: plain Python over the recorded runs, to hold the product against.

Invariants:
* Nothing of ledgercli is imported: facts, history, verdicts, flips and frontiers are worked out here a second time,
  from the written pack, the toolset and the policy language's description.
* A lookup that finds nothing raises `UnknownError`; a rule that ends in it counts as failed. `any_of` and `all_of` are
  three-valued as `||` and `&&` are.
* An edit says the same thing twice: as a change of the pack's text, and as a change of the rules below.

Every recorded call fits its tool's schema, so the two built-in rules never fail; they are not repeated here.
"""

# mypy: disable-error-code="no-any-return"
from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from itertools import pairwise
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PACK_FILE = ROOT / "policies" / "airline.yaml"
DATA = ROOT.parent / "shared" / "data"
RUNS_FILE = DATA / "trajectories" / "airline1_gpt-4o.jsonl"
NOW = datetime(2024, 5, 15, 20, tzinfo=UTC)  # 15:00 in EST, the scenario's `now`

SEVERITY = {"allow": 0, "warn": 1, "require_approval": 2, "deny": 3}
REFUSING = frozenset({"require_approval", "deny"})

BOOK, CANCEL, CERTIFICATE = "book_reservation", "cancel_reservation", "send_certificate"
FLIGHTS, BAGS, PASSENGERS = (
    "update_reservation_flights",
    "update_reservation_baggages",
    "update_reservation_passengers",
)
CHANGES = (FLIGHTS, BAGS, PASSENGERS, CANCEL)


# ---- three answers -------------------------------------------------------------------------------------------------


class UnknownError(Exception):
    """It cannot be told."""


def any_of(*asked: Callable[[], bool]) -> bool:
    """True if one is true, else unknown if one is, else false."""
    unknown = False
    for ask in asked:
        try:
            if ask():
                return True
        except UnknownError:
            unknown = True
    if unknown:
        raise UnknownError
    return False


def all_of(*asked: Callable[[], bool]) -> bool:
    return not any_of(*(partial(lambda ask: not ask(), ask) for ask in asked))


def some(items: Iterable[Any], holds: Callable[[Any], bool]) -> bool:
    return any_of(*(partial(holds, item) for item in items))


def every(items: Iterable[Any], holds: Callable[[Any], bool]) -> bool:
    return all_of(*(partial(holds, item) for item in items))


def at(tree: Any, *keys: Any) -> Any:
    """What stands under the keys, one below the other."""
    for key in keys:
        try:
            tree = tree[key]
        except (KeyError, IndexError):
            raise UnknownError from None
    return tree


# ---- the recorded runs, and what is known at a step ------------------------------------------------------------------


@dataclass(frozen=True)
class Step:
    """A line's number in the ledger; `tool` is 'user' for what the user said."""

    number: int
    tool: str
    args: dict[str, Any]
    result: str


@dataclass(frozen=True)
class Run:
    id: str
    task: str
    steps: tuple[Step, ...]

    @property
    def ledger_name(self) -> str:
        return self.id.replace("/", "-") + ".ledger.jsonl"


@cache
def recorded_runs(file: Path = RUNS_FILE) -> tuple[Run, ...]:
    return tuple(run_of(json.loads(line)) for line in file.read_text().splitlines())


def run_of(record: dict[str, Any]) -> Run:
    """The first thing that the user said is the task; later ones are steps beside the calls."""
    events: list[tuple[str, dict[str, Any], str]] = []
    for step in record["steps"]:
        events += [("user", {}, message) for message in step["user_msgs"]]
        events.append((step["tool"], step["args"], step["result"]))
    first = next((n for n, event in enumerate(events) if event[0] == "user"), None)
    task = "" if first is None else events.pop(first)[2]
    return Run(record["trajectory_id"], task, tuple(Step(n, *event) for n, event in enumerate(events, 1)))


@dataclass
class World:
    """What earlier successful calls have shown, what they did, and what the user said."""

    task: str
    said: list[str] = field(default_factory=list)
    users: dict[str, Any] = field(default_factory=dict)
    reservations: dict[str, Any] = field(default_factory=dict)
    flights: dict[str, dict[str, Any]] = field(default_factory=dict)
    routes: dict[str, Any] = field(default_factory=dict)
    done: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def learn(self, step: Step) -> None:
        if step.tool == "user":
            self.said.append(step.result)
        elif not step.result.startswith("Error"):
            data = json.loads(step.result) if step.result[:1] in ("{", "[") else step.result
            if step.tool in LEARN:
                LEARN[step.tool](self, step.args, data)
            self.done.append((step.tool, step.args))

    def has_done(self, tool: str, reservation_id: str) -> bool:
        return any(name == tool and args["reservation_id"] == reservation_id for name, args in self.done)

    def named_by_user(self, value: str) -> bool:
        return any(stands_in(value, text) for text in self.said)

    def named_in_task(self, value: str) -> bool:
        return stands_in(value, self.task)


def stands_in(value: str, text: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(value)}(?!\w)", text, re.IGNORECASE) is not None


def learn_user(world: World, args: dict[str, Any], data: Any) -> None:
    world.users[args["user_id"]] = data


def learn_reservation(world: World, args: dict[str, Any], data: Any) -> None:
    world.reservations[args["reservation_id"]] = data


def learn_looked_up(world: World, args: dict[str, Any], data: Any) -> None:
    learn_reservation(world, args, data)
    for leg in data["flights"]:
        learn_route(world, leg)


def learn_route(world: World, leg: dict[str, Any]) -> None:
    world.routes[leg["flight_number"]] = {"origin": leg["origin"], "destination": leg["destination"]}


def learn_flight(world: World, flight: dict[str, Any], date: str) -> None:
    world.flights.setdefault(flight["flight_number"], {})[date] = flight
    learn_route(world, flight)


def learn_direct(world: World, args: dict[str, Any], data: Any) -> None:
    for flight in data:
        learn_flight(world, flight, args["date"])


def learn_onestop(world: World, args: dict[str, Any], data: Any) -> None:
    for first, second in data:
        learn_flight(world, first, first["date"])
        learn_flight(world, second, second["date"])


def learn_booked(world: World, args: dict[str, Any], data: Any) -> None:
    world.reservations[data["reservation_id"]] = data
    user = world.users.get(args["user_id"])
    if user is None:
        return
    user["reservations"] = [*user["reservations"], data["reservation_id"]]
    methods = user["payment_methods"]
    before = {name: dict(method) for name, method in methods.items()}
    for paid in args["payment_methods"]:
        method = before.get(paid["payment_id"], {})
        if method.get("source") == "gift_card":
            set_balance(methods[paid["payment_id"]], method, -paid["amount"])
        elif method.get("source") == "certificate":
            methods.pop(paid["payment_id"], None)


def set_balance(method: dict[str, Any], before: dict[str, Any], change: float | None) -> None:
    """A balance that cannot be told any more is none."""
    method.pop("amount", None)
    if change is not None and "amount" in before:
        method["amount"] = before["amount"] + change


def learn_changed_bags(world: World, args: dict[str, Any], data: Any) -> None:
    """A gift card is charged by as much as the reservation's payment history has grown."""
    before = world.reservations.get(args["reservation_id"])
    learn_reservation(world, args, data)
    method = world.users.get(data["user_id"], {}).get("payment_methods", {}).get(args["payment_id"], {})
    if method.get("source") == "gift_card":
        grown = None if before is None else total(data["payment_history"]) - total(before["payment_history"])
        set_balance(method, dict(method), None if grown is None else -grown)


def learn_changed_flights(world: World, args: dict[str, Any], data: Any) -> None:
    """The tool gives back the cabin of before."""
    learn_changed_bags(world, args, data)
    data["cabin"] = args["cabin"]


def learn_certificate(world: World, args: dict[str, Any], data: str) -> None:
    if args["user_id"] in world.users:
        name = data.split(" ")[1]
        methods = world.users[args["user_id"]].setdefault("payment_methods", {})
        methods[name] = {"id": name, "source": "certificate", "amount": args["amount"]}


def total(payments: list[dict[str, Any]]) -> float:
    return sum(payment["amount"] for payment in payments)


LEARN: dict[str, Callable[[World, dict[str, Any], Any], None]] = {
    "get_user_details": learn_user,
    "get_reservation_details": learn_looked_up,
    "search_direct_flight": learn_direct,
    "search_onestop_flight": learn_onestop,
    BOOK: learn_booked,
    FLIGHTS: learn_changed_flights,
    BAGS: learn_changed_bags,
    PASSENGERS: learn_reservation,
    CANCEL: learn_reservation,
    CERTIFICATE: learn_certificate,
}


# ---- what the rules speak of -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Bounds:
    """Every number of the pack: those under `constraints`, then those that stand in expressions."""

    max_passengers: int = 5
    max_gift_cards: int = 3
    insurance_per_passenger: int = 30
    price_per_bag: int = 50
    compensation_for_cancelled: int = 100
    compensation_for_delayed: int = 50
    regular: tuple[int, int, int] = (0, 1, 2)  # free bags in basic economy, economy, business
    silver: tuple[int, int, int] = (1, 2, 3)
    gold: tuple[int, int, int] = (2, 3, 3)
    day_begins: int = 5  # hours after midnight UTC
    regret_hours: int = 24
    max_certificates: int = 1
    max_credit_cards: int = 1
    least_payment: int = 0
    tolerance: float = 0.005
    spare_seats: int = 0
    gift_card_credit: float = 0

    def free_bags(self, membership: str, cabin: str) -> int:
        return getattr(self, membership)[("basic_economy", "economy", "business").index(cabin)]

    @property
    def today(self) -> str:
        return (NOW - timedelta(hours=self.day_begins)).strftime("%Y-%m-%d")


@dataclass(frozen=True)
class Case:
    """A proposal in the world before it. The properties are the pack's `define`, under the same names."""

    world: World
    args: dict[str, Any]
    bounds: Bounds

    @property
    def customer(self) -> Any:
        return at(self.world.users, self.args["user_id"])

    @property
    def customer_known(self) -> bool:
        return self.args["user_id"] in self.world.users

    @property
    def reservation(self) -> Any:
        return at(self.world.reservations, self.args["reservation_id"])

    @property
    def owner(self) -> Any:
        return at(self.world.users, self.reservation["user_id"])

    @property
    def route(self) -> list[Any]:
        return [at(self.world.routes, f["flight_number"]) for f in self.args["flights"]]

    def flight(self, leg: dict[str, Any]) -> Any:
        return at(self.world.flights, leg["flight_number"], leg["date"])

    def flights_known(self, legs: list[dict[str, Any]]) -> bool:
        return all(leg["date"] in self.world.flights.get(leg["flight_number"], {}) for leg in legs)

    def has_seats(self, leg: dict[str, Any], people: list[Any]) -> bool:
        return all_of(
            lambda: at(self.flight(leg), "status") == "available",
            lambda: (
                at(self.flight(leg), "available_seats", self.args["cabin"]) >= len(people) + self.bounds.spare_seats
            ),
        )

    def fare(self, legs: list[dict[str, Any]]) -> float:
        return sum(at(self.flight(leg), "prices", self.args["cabin"]) for leg in legs)

    @property
    def booked_price(self) -> float:
        insurance = self.bounds.insurance_per_passenger if self.args["insurance"] == "yes" else 0
        each = self.fare(self.args["flights"]) + insurance
        return each * len(self.args["passengers"]) + self.bounds.price_per_bag * self.args["nonfree_baggages"]

    @property
    def same_cabin(self) -> bool:
        return self.args["cabin"] == self.reservation["cabin"]

    @property
    def new_flights(self) -> list[Any]:
        there = [(k["flight_number"], k["date"]) for k in self.reservation["flights"]]
        return [f for f in self.args["flights"] if (f["flight_number"], f["date"]) not in there]

    @property
    def kept_flights(self) -> list[Any]:
        asked = [(f["flight_number"], f["date"]) for f in self.args["flights"]]
        return [k for k in self.reservation["flights"] if (k["flight_number"], k["date"]) in asked]

    @property
    def dropped_flights(self) -> list[Any]:
        return [k for k in self.reservation["flights"] if k not in self.kept_flights]

    @property
    def bought_flights(self) -> list[Any]:
        return self.new_flights if self.same_cabin else self.args["flights"]

    @property
    def change_price(self) -> float:
        returned = self.dropped_flights if self.same_cabin else self.reservation["flights"]
        difference = self.fare(self.bought_flights) - sum(at(k, "price") for k in returned)
        return difference * len(self.reservation["passengers"])

    def free_bags(self, member: Any, cabin: str, people: list[Any]) -> int:
        return self.bounds.free_bags(at(member, "membership"), cabin) * len(people)

    def bags_to_pay(self, free: int) -> bool:
        return self.args["nonfree_baggages"] == max(0, self.args["total_baggages"] - free)

    def methods(self, kind: str) -> int:
        return sum(p["payment_id"].startswith(kind) for p in self.args["payment_methods"])

    @property
    def balance(self) -> float:
        """What is left on the gift card of a change, or may be overdrawn."""
        return at(self.owner, "payment_methods", self.args["payment_id"], "amount") + self.bounds.gift_card_credit

    def compensated_reservation(self, amount: int, *, changed_or_cancelled: bool) -> bool:
        return any(
            r["user_id"] == self.args["user_id"]
            and self.args["amount"] == amount * len(r["passengers"])
            and (not changed_or_cancelled or self.world.has_done(CANCEL, key) or self.world.has_done(FLIGHTS, key))
            for key, r in self.world.reservations.items()
        )


Test = Callable[[Case], bool]


def identified(c: Case, user_id: Callable[[], str]) -> bool:
    return any_of(lambda: c.world.named_in_task(user_id()), lambda: c.world.named_by_user(user_id()))


def route_known(c: Case) -> bool:
    return all(f["flight_number"] in c.world.routes for f in c.args["flights"])


def connects(c: Case) -> bool:
    legs = c.route
    return all(after["origin"] == before["destination"] for before, after in pairwise(legs))


def leads(c: Case, trip: Callable[[], dict[str, Any]]) -> bool:
    """Whether the flights are the trip that arguments or a reservation describe."""
    return all_of(
        lambda: some(c.route, lambda leg: leg["destination"] == trip()["destination"]),
        lambda: at(c.route, 0)["origin"] == trip()["origin"],
        lambda: (
            at(c.route, -1)["destination"]
            == trip()["origin" if trip()["flight_type"] == "round_trip" else "destination"]
        ),
    )


def pays_with_gift_card(c: Case) -> bool:
    return all_of(
        lambda: c.args["payment_id"] in c.owner["payment_methods"],
        lambda: c.args["payment_id"].startswith("gift_card_"),
    )


def owner_known(c: Case) -> bool:
    return c.reservation["user_id"] in c.world.users


def gift_card_pays_flights(c: Case) -> bool:
    return all_of(lambda: owner_known(c), lambda: pays_with_gift_card(c), lambda: c.flights_known(c.bought_flights))


def booked_within_a_day(c: Case) -> bool:
    booked = datetime.fromisoformat(at(c.reservation, "created_at") + "-05:00")
    return NOW - booked <= timedelta(hours=c.bounds.regret_hours)


def cancelled_by_airline(c: Case) -> bool:
    return any(
        c.world.flights.get(k["flight_number"], {}).get(k["date"], {}).get("status") == "cancelled"
        for k in c.reservation["flights"]
    )


def in_business(c: Case) -> bool:
    return at(c.reservation, "cabin") == "business"


def insured(c: Case) -> bool:
    return at(c.reservation, "insurance") == "yes"


def owns_insured_or_business(c: Case) -> bool:
    def one(key: str) -> bool:
        return any_of(
            lambda: at(c.world.reservations, key, "insurance") == "yes",
            lambda: at(c.world.reservations, key, "cabin") == "business",
        )

    return some(c.customer["reservations"], one)


def member(c: Case, *levels: str) -> bool:
    return at(c.customer, "membership") in levels


def pays_at_most_its_balance(c: Case, paid: dict[str, Any]) -> bool:
    method = c.customer["payment_methods"][paid["payment_id"]]
    return "amount" not in method or paid["amount"] <= method["amount"]


def stands_once(c: Case, paid: dict[str, Any]) -> bool:
    same = [p for p in c.args["payment_methods"] if p["payment_id"] == paid["payment_id"]]
    return paid["amount"] >= c.bounds.least_payment and len(same) == 1


def seats_unless_unseen(c: Case, leg: dict[str, Any]) -> bool:
    return any_of(lambda: not c.flights_known([leg]), lambda: c.has_seats(leg, c.reservation["passengers"]))


def paid_for_it_or_in_profile(c: Case) -> bool:
    return any_of(
        lambda: any(p["payment_id"] == c.args["payment_id"] for p in c.reservation["payment_history"]),
        lambda: c.args["payment_id"] in c.owner["payment_methods"],
    )


# ---- the rules, in the pack's order ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Rule:
    name: str
    tools: tuple[str, ...]
    check: Test
    condition: Test = lambda c: True
    effect: str = "deny"

    def fails(self, c: Case) -> str | None:
        """'broken', 'untold' or None; a condition that cannot be told leaves the rule untold."""
        try:
            return None if not self.condition(c) or self.check(c) else "broken"
        except UnknownError:
            return "untold"


RULES = (
    Rule("customer_identified", (BOOK, CERTIFICATE), lambda c: identified(c, lambda: c.args["user_id"])),
    Rule("owner_identified", CHANGES, lambda c: identified(c, lambda: c.reservation["user_id"])),
    Rule("reservation_still_stands", CHANGES, lambda c: c.reservation.get("status") != "cancelled"),
    # booking
    Rule("not_too_many_passengers", (BOOK,), lambda c: len(c.args["passengers"]) <= c.bounds.max_passengers),
    Rule("booked_flights_lie_ahead", (BOOK,), lambda c: all(f["date"] >= c.bounds.today for f in c.args["flights"])),
    Rule(
        "booked_flights_have_seats",
        (BOOK,),
        lambda c: every(c.args["flights"], lambda f: c.has_seats(f, c.args["passengers"])),
    ),
    Rule("booked_route_fits", (BOOK,), lambda c: leads(c, lambda: c.args), route_known),
    Rule(
        "booked_bags_follow_allowance",
        (BOOK,),
        lambda c: c.bags_to_pay(c.free_bags(c.customer, c.args["cabin"], c.args["passengers"])),
        lambda c: c.customer_known,
    ),
    Rule(
        "payment_methods_in_profile",
        (BOOK,),
        lambda c: every(c.args["payment_methods"], lambda p: p["payment_id"] in c.customer["payment_methods"]),
    ),
    Rule(
        "payment_methods_combine",
        (BOOK,),
        lambda c: (
            c.methods("certificate_") <= c.bounds.max_certificates
            and c.methods("credit_card_") <= c.bounds.max_credit_cards
            and c.methods("gift_card_") <= c.bounds.max_gift_cards
        ),
    ),
    Rule("payment_methods_stand_once", (BOOK,), lambda c: all(stands_once(c, p) for p in c.args["payment_methods"])),
    Rule(
        "payment_methods_cover_their_part",
        (BOOK,),
        lambda c: all(
            pays_at_most_its_balance(c, p)
            for p in c.args["payment_methods"]
            if p["payment_id"] in c.customer["payment_methods"]
        ),
        lambda c: c.customer_known,
    ),
    Rule(
        "price_adds_up",
        (BOOK,),
        lambda c: abs(total(c.args["payment_methods"]) - c.booked_price) < c.bounds.tolerance,
        lambda c: c.flights_known(c.args["flights"]),
    ),
    # changing flights or cabin
    Rule(
        "basic_economy_flights_stay",
        (FLIGHTS,),
        lambda c: not c.new_flights and not c.dropped_flights,
        lambda c: at(c.reservation, "cabin") == "basic_economy",
    ),
    Rule("flown_flights_stay", (FLIGHTS,), lambda c: all(k["date"] >= c.bounds.today for k in c.dropped_flights)),
    Rule("bought_flights_lie_ahead", (FLIGHTS,), lambda c: all(f["date"] >= c.bounds.today for f in c.bought_flights)),
    Rule(
        "new_flights_have_seats",
        (FLIGHTS,),
        lambda c: every(c.new_flights, lambda f: c.has_seats(f, c.reservation["passengers"])),
    ),
    Rule(
        "kept_flights_have_seats_in_new_cabin",
        (FLIGHTS,),
        lambda c: every(c.kept_flights, lambda k: seats_unless_unseen(c, k)),
        lambda c: not c.same_cabin,
    ),
    Rule("route_and_trip_type_stay", (FLIGHTS,), lambda c: leads(c, lambda: c.reservation), route_known),
    Rule("flights_connect", (BOOK, FLIGHTS), connects, route_known),
    # changing bags or passengers
    Rule("bags_are_only_added", (BAGS,), lambda c: c.args["total_baggages"] >= at(c.reservation, "total_baggages")),
    Rule(
        "added_bags_follow_allowance",
        (BAGS,),
        lambda c: c.bags_to_pay(c.free_bags(c.owner, at(c.reservation, "cabin"), c.reservation["passengers"])),
    ),
    Rule(
        "number_of_passengers_stays",
        (PASSENGERS,),
        lambda c: len(c.args["passengers"]) == len(c.reservation["passengers"]),
    ),
    # paying for a change
    Rule(
        "change_paid_by_card",
        (FLIGHTS, BAGS),
        lambda c: c.args["payment_id"].startswith(("gift_card_", "credit_card_")),
    ),
    Rule("change_paid_from_profile", (FLIGHTS, BAGS), paid_for_it_or_in_profile),
    Rule("gift_card_covers_flights", (FLIGHTS,), lambda c: c.change_price <= c.balance, gift_card_pays_flights),
    Rule(
        "gift_card_covers_bags",
        (BAGS,),
        lambda c: (
            c.bounds.price_per_bag * (c.args["nonfree_baggages"] - at(c.reservation, "nonfree_baggages")) <= c.balance
        ),
        lambda c: all_of(lambda: owner_known(c), lambda: pays_with_gift_card(c)),
    ),
    # cancelling
    Rule(
        "cancelled_trip_is_not_flown",
        (CANCEL,),
        lambda c: all(k["date"] >= c.bounds.today for k in c.reservation["flights"]),
    ),
    Rule(
        "cancellation_allowed",
        (CANCEL,),
        lambda c: any_of(
            lambda: booked_within_a_day(c), lambda: cancelled_by_airline(c), lambda: in_business(c), lambda: insured(c)
        ),
    ),
    # compensation
    Rule(
        "compensation_only_for_entitled",
        (CERTIFICATE,),
        lambda c: any_of(lambda: member(c, "silver", "gold"), lambda: owns_insured_or_business(c)),
    ),
    Rule(
        "compensation_fits_a_reservation",
        (CERTIFICATE,),
        lambda c: (
            c.compensated_reservation(c.bounds.compensation_for_cancelled, changed_or_cancelled=False)
            or c.compensated_reservation(c.bounds.compensation_for_delayed, changed_or_cancelled=True)
        ),
    ),
)


@dataclass(frozen=True)
class Pack:
    rules: tuple[Rule, ...] = RULES
    bounds: Bounds = Bounds()

    def changed(self, name: str, **change: Any) -> Pack:
        assert name in {rule.name for rule in self.rules}
        return replace(self, rules=tuple(replace(r, **change) if r.name == name else r for r in self.rules))

    def rule(self, name: str) -> Rule:
        return next(rule for rule in self.rules if rule.name == name)


SHIPPED = Pack()


# ---- verdicts --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Failed:
    """A rule that failed: `kind` is 'broken' where its message is given, 'untold' where facts are not known."""

    rule: str
    effect: str
    kind: str


@dataclass(frozen=True)
class Verdict:
    """The failed rules, strictest first, then in the pack's order; those that only warn are among them."""

    failed: tuple[Failed, ...] = ()

    @property
    def deciding(self) -> Failed | None:
        """The one whose message is the verdict's reason."""
        return self.failed[0] if self.failed else None

    @property
    def effect(self) -> str:
        return "allow" if self.deciding is None else self.deciding.effect

    @property
    def refuses(self) -> bool:
        return self.effect in REFUSING

    @property
    def rules(self) -> tuple[str, ...]:
        return tuple(f.rule for f in self.failed)


def judge(pack: Pack, world: World, step: Step) -> Verdict:
    case = Case(world, step.args, pack.bounds)
    judged = ((rule, rule.fails(case)) for rule in pack.rules if step.tool in rule.tools)
    failed = [Failed(rule.name, rule.effect, kind) for rule, kind in judged if kind is not None]
    return Verdict(tuple(sorted(failed, key=lambda f: -SEVERITY[f.effect])))


def verdicts(run: Run, mode: str, *packs: Pack) -> Iterator[tuple[Step, tuple[Verdict, ...]]]:
    """Each call with the verdicts of the shipped pack and of `packs`, in the state that the ledger of `mode` holds.

    Arguments:
        run: a recorded run.
        mode: 'shadow', all recorded results were used, or 'enforce', those of calls that the shipped pack refuses
            were not.
        packs: judged beside the shipped one; they never decide what was used.

    """
    world = World(run.task)
    for step in run.steps:
        refused = False
        if step.tool != "user":
            judged = tuple(judge(pack, world, step) for pack in (SHIPPED, *packs))
            refused = mode == "enforce" and judged[0].refuses
            yield step, judged
        if not refused:
            world.learn(step)


# ---- what-if ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Flip:
    """A call whose effect is another under the edited pack.

    Arguments:
        step: its number in the ledger.
        tool: what was called.
        from_effect: under the shipped pack.
        to_effect: under the edited one.
        rules: names, sorted, of the rules that failed under one pack only or with different effects.
        before: the rules that fail under the shipped pack.
        after: those under the edited one.

    """

    step: int
    tool: str
    from_effect: str
    to_effect: str
    rules: tuple[str, ...]
    before: tuple[Failed, ...]
    after: tuple[Failed, ...]


@dataclass(frozen=True)
class Expected:
    """Of one run: its flips, and the step from which on it is counterfactual (None: it is exact)."""

    flips: tuple[Flip, ...]
    frontier: int | None


def expected_whatif(edit: Edit, mode: str, *, warnings_tell: bool = False) -> dict[str, Expected]:
    """For each run, by its id, what a replay of its ledger under the edited pack has to say.

    Arguments:
        edit: one of `EDITS`.
        mode: that in which the ledgers were written, 'shadow' or 'enforce'.
        warnings_tell: whether a warning of the edited pack is something else than the agent of a shadow run saw.

    """
    edited = edit.pack(SHIPPED)
    return {run.id: expected(run, mode, edited, warnings_tell=warnings_tell) for run in recorded_runs()}


def expected(run: Run, mode: str, edited: Pack, *, warnings_tell: bool) -> Expected:
    flips = []
    frontier = None
    for step, (before, after) in verdicts(run, mode, edited):
        if before.effect != after.effect:
            flips.append(flip(step, before, after))
        if frontier is None and (
            saw_something_else(before, after)
            if mode == "enforce"
            else after.refuses or (warnings_tell and after.effect == "warn")
        ):
            frontier = step.number
    return Expected(tuple(flips), frontier)


def flip(step: Step, before: Verdict, after: Verdict) -> Flip:
    was, now = ({(f.rule, f.effect) for f in verdict.failed} for verdict in (before, after))
    names = tuple(sorted({rule for rule, _ in was ^ now}))
    return Flip(step.number, step.tool, before.effect, after.effect, names, before.failed, after.failed)


def saw_something_else(before: Verdict, after: Verdict) -> bool:
    """Whether an enforced run is counterfactual from here on.

    Its first refusal makes it so in itself. Before that the shipped pack, which never warns, had allowed without a
    word: any other effect is something else, and the texts of reasons need not be compared.
    """
    assert before.effect != "warn"
    return before.refuses or after.effect != "allow"


# ---- edits -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Edit:
    """One change of the pack: of its text, and of the rules above."""

    id: str
    text: Callable[[str], str]
    pack: Callable[[Pack], Pack]


def place(text: str, name: str) -> tuple[int, int]:
    """Where a rule's text begins and ends; a heading after it is not part of it."""
    begin = text.index(f"  - name: {name}\n")
    end = re.compile(r"^  (- name:|# ----)|\Z", re.MULTILINE).search(text, begin + 1)
    assert end is not None
    return begin, end.start()


def within(name: str, change: Callable[[str], str]) -> Callable[[str], str]:
    """A change of one rule's text."""

    def changed(text: str) -> str:
        begin, end = place(text, name)
        return text[:begin] + change(text[begin:end]) + text[end:]

    return changed


def swapped(old: str, new: str, times: int = 1) -> Callable[[str], str]:
    """A change of something that stands there exactly so many times."""

    def changed(text: str) -> str:
        assert text.count(old) == times, f"{old!r} stands {text.count(old)} times"
        return text.replace(old, new)

    return changed


def without(name: str) -> Edit:
    return Edit(
        f"without {name}",
        within(name, lambda _: ""),
        lambda pack: replace(pack, rules=tuple(rule for rule in pack.rules if rule.name != name)),
    )


def bound(old: str, new: str, times: int = 1, **bounds: Any) -> Edit:
    """A number shifted, under `constraints` or in an expression."""
    name = ", ".join(f"{key} {getattr(Bounds(), key)} -> {value}" for key, value in bounds.items())
    return Edit(name, swapped(old, new, times), lambda pack: replace(pack, bounds=replace(pack.bounds, **bounds)))


def reaching(name: str, *tools: str) -> Edit:
    def change(block: str) -> str:
        return re.sub(
            r"^    tools:.*?\n(?=    \w)", f"    tools: [{', '.join(tools)}]\n", block, flags=re.MULTILINE | re.DOTALL
        )

    return Edit(f"{name} for {', '.join(tools)}", within(name, change), lambda pack: pack.changed(name, tools=tools))


def with_effect(name: str, effect: str) -> Edit:
    change = swapped("    on_fail:\n", f"    on_fail:\n      effect: {effect}\n")
    return Edit(f"{name} only {effect}", within(name, change), lambda pack: pack.changed(name, effect=effect))


def rewritten(title: str, name: str, old: str, new: str, **change: Any) -> Edit:
    """Another check or condition."""
    return Edit(title, within(name, swapped(old, new)), lambda pack: pack.changed(name, **change))


def with_rule(title: str, rule: Rule, text: str) -> Edit:
    """A new rule, last in the pack."""
    head = f"\n  - name: {rule.name}\n    tools: [{', '.join(rule.tools)}]\n"
    return Edit(title, lambda pack: pack + head + text, lambda pack: replace(pack, rules=(*pack.rules, rule)))


def together(title: str, *edits: Edit) -> Edit:
    def text(pack: str) -> str:
        for edit in edits:
            pack = edit.text(pack)
        return pack

    def rules(pack: Pack) -> Pack:
        for edit in edits:
            pack = edit.pack(pack)
        return pack

    return Edit(title, text, rules)


def moved_to_the_end(name: str) -> Edit:
    def text(pack: str) -> str:
        begin, end = place(pack, name)
        return pack[:begin] + pack[end:] + "\n" + pack[begin:end].rstrip("\n") + "\n"

    def rules(pack: Pack) -> Pack:
        return replace(pack, rules=(*(r for r in pack.rules if r.name != name), pack.rule(name)))

    return Edit(f"{name} stands last", text, rules)


NOT_BUSINESS = "reservation.cabin != 'business'"

EDITS: tuple[Edit, ...] = (
    *(without(rule.name) for rule in RULES),
    # bounds under `constraints`
    bound("max_passengers: 5", "max_passengers: 2", max_passengers=2),
    bound("max_passengers: 5", "max_passengers: 9", max_passengers=9),
    bound("max_gift_cards: 3", "max_gift_cards: 1", max_gift_cards=1),
    bound("insurance_per_passenger: 30", "insurance_per_passenger: 25", insurance_per_passenger=25),
    bound("price_per_bag: 50", "price_per_bag: 0", price_per_bag=0),
    bound("price_per_bag: 50", "price_per_bag: 60", price_per_bag=60),
    bound("compensation_for_cancelled: 100", "compensation_for_cancelled: 50", compensation_for_cancelled=50),
    bound("compensation_for_delayed: 50", "compensation_for_delayed: 75", compensation_for_delayed=75),
    bound("economy: 1, business: 2}", "economy: 2, business: 2}", regular=(0, 2, 2)),
    bound("{basic_economy: 1, economy: 2", "{basic_economy: 0, economy: 1", silver=(0, 1, 3)),
    bound("{basic_economy: 2, economy: 3", "{basic_economy: 2, economy: 1", gold=(2, 1, 3)),
    # bounds in expressions
    bound("duration('5h')", "duration('29h')", day_begins=29),
    bound("duration('5h')", "duration('-19h')", day_begins=-19),
    bound("<= duration('24h')", "<= duration('96h')", regret_hours=96),
    bound("<= duration('24h')", "<= duration('1h')", regret_hours=1),
    bound("startsWith('certificate_'))) <= 1", "startsWith('certificate_'))) <= 2", max_certificates=2),
    bound("startsWith('credit_card_'))) <= 1", "startsWith('credit_card_'))) <= 0", max_credit_cards=0),
    bound("p.amount >= 0 &&", "p.amount >= 100 &&", least_payment=100),
    bound("booked_price) < 0.005", "booked_price) < 50.0", tolerance=50.0),
    together(
        "three seats stay free",
        bound(">= size(action.args.passengers)", ">= size(action.args.passengers) + 3", spare_seats=3),
        bound(">= size(reservation.passengers)", ">= size(reservation.passengers) + 3", times=2, spare_seats=3),
    ),
    bound("_id].amount\n    on_fail", "_id].amount + 500.0\n    on_fail", times=2, gift_card_credit=500),
    # tools of a rule, fewer or more
    reaching("owner_identified", CANCEL),
    reaching("reservation_still_stands", FLIGHTS, BAGS, PASSENGERS),
    reaching("flights_connect", BOOK),
    reaching("change_paid_by_card", BAGS),
    reaching("change_paid_from_profile", FLIGHTS),
    reaching("not_too_many_passengers", BOOK, PASSENGERS),
    reaching("cancelled_trip_is_not_flown", CANCEL, FLIGHTS, BAGS),
    reaching("cancellation_allowed", *CHANGES),
    # conditions, narrower or wider
    rewritten(
        "basic_economy_flights_stay in economy too",
        "basic_economy_flights_stay",
        "reservation.cabin == 'basic_economy'",
        NOT_BUSINESS,
        condition=lambda c: not in_business(c),
    ),
    rewritten(
        "booked_bags_follow_allowance in business only",
        "booked_bags_follow_allowance",
        "condition: customer_known",
        "condition: customer_known && action.args.cabin == 'business'",
        condition=lambda c: c.customer_known and c.args["cabin"] == "business",
    ),
    rewritten(
        "flights_connect where routes are not known",
        "flights_connect",
        "    condition: route_known\n",
        "",
        condition=lambda c: True,
    ),
    rewritten(
        "price_adds_up where flights are not known",
        "price_adds_up",
        "    condition: booked_flights_known\n",
        "",
        condition=lambda c: True,
    ),
    rewritten(
        "gift_card_covers_flights where flights are not known",
        "gift_card_covers_flights",
        " && bought_flights_known",
        "",
        condition=lambda c: all_of(lambda: owner_known(c), lambda: pays_with_gift_card(c)),
    ),
    rewritten(
        "kept_flights_have_seats_in_new_cabin in the same cabin too",
        "kept_flights_have_seats_in_new_cabin",
        "    condition: '!same_cabin'\n",
        "",
        condition=lambda c: True,
    ),
    # checks
    rewritten(
        "customer_identified by the task only",
        "customer_identified",
        " || from_user(action.args.user_id)",
        "",
        check=lambda c: c.world.named_in_task(c.args["user_id"]),
    ),
    rewritten(
        "owner_identified by an answer only",
        "owner_identified",
        "from_task(reservation.user_id) || ",
        "",
        check=lambda c: c.world.named_by_user(c.reservation["user_id"]),
    ),
    rewritten(
        "kept_flights_have_seats_in_new_cabin as searches have shown",
        "kept_flights_have_seats_in_new_cabin",
        "!(k.flight_number in state.facts.flights) || !(k.date in state.facts.flights[k.flight_number])\n        || ",
        "",
        check=lambda c: every(c.kept_flights, lambda k: c.has_seats(k, c.reservation["passengers"])),
    ),
    rewritten(
        "cancellation_allowed without insurance",
        "cancellation_allowed",
        " || reservation.insurance == 'yes'",
        "",
        check=lambda c: any_of(lambda: booked_within_a_day(c), lambda: cancelled_by_airline(c), lambda: in_business(c)),
    ),
    rewritten(
        "cancellation_allowed for gold members",
        "cancellation_allowed",
        "reservation.insurance == 'yes'",
        "reservation.insurance == 'yes' || owner.membership == 'gold'",
        check=lambda c: any_of(
            lambda: SHIPPED.rule("cancellation_allowed").check(c), lambda: at(c.owner, "membership") == "gold"
        ),
    ),
    rewritten(
        "change_paid_from_profile and by nothing else",
        "change_paid_from_profile",
        "reservation.payment_history.exists(p, p.payment_id == action.args.payment_id)\n      || ",
        "",
        check=lambda c: c.args["payment_id"] in c.owner["payment_methods"],
    ),
    rewritten(
        "compensation_only_for_entitled: gold members",
        "compensation_only_for_entitled",
        "['silver', 'gold'] || has_insured_or_business_reservation",
        "['gold']",
        check=lambda c: member(c, "gold"),
    ),
    rewritten(
        "compensation_only_for_entitled: by reservation",
        "compensation_only_for_entitled",
        "customer.membership in ['silver', 'gold'] || has",
        "has",
        check=owns_insured_or_business,
    ),
    rewritten(
        "cancelled_trip_is_not_flown: one flight ahead is enough",
        "cancelled_trip_is_not_flown",
        "reservation.flights.all(",
        "reservation.flights.exists(",
        check=lambda c: any(k["date"] >= c.bounds.today for k in c.reservation["flights"]),
    ),
    # rules that hide behind each other, removed together
    *(
        together(f"without {' and '.join(names)}", *(without(name) for name in names))
        for names in (
            ("booked_bags_follow_allowance", "price_adds_up"),
            ("booked_flights_have_seats", "booked_route_fits"),
            ("change_paid_by_card", "change_paid_from_profile", "gift_card_covers_flights"),
            ("basic_economy_flights_stay", "route_and_trip_type_stay", "flights_connect"),
            ("flown_flights_stay", "bought_flights_lie_ahead"),
            ("owner_identified", "reservation_still_stands", "cancelled_trip_is_not_flown", "cancellation_allowed"),
        )
    ),
    # effects
    with_effect("cancellation_allowed", "require_approval"),
    with_effect("cancelled_trip_is_not_flown", "warn"),
    with_effect("price_adds_up", "warn"),
    with_effect("owner_identified", "require_approval"),
    with_effect("bought_flights_lie_ahead", "require_approval"),
    with_effect("compensation_fits_a_reservation", "require_approval"),
    together(
        "cancelling is only asked about or warned of",
        with_effect("reservation_still_stands", "warn"),
        with_effect("owner_identified", "warn"),
        with_effect("cancelled_trip_is_not_flown", "require_approval"),
        with_effect("cancellation_allowed", "warn"),
    ),
    # new rules
    with_rule(
        "no certificates at all",
        Rule("no_certificates", (CERTIFICATE,), lambda c: False),
        "    check: false\n    on_fail: Certificates are given by people.\n",
    ),
    with_rule(
        "transfers are warned of",
        Rule("no_transfers", ("transfer_to_human_agents",), lambda c: False, effect="warn"),
        "    check: false\n    on_fail: {error: Can it really not be done here?, effect: warn}\n",
    ),
    with_rule(
        "profiles are looked at for who is named",
        Rule(
            "named_profile",
            ("get_user_details",),
            lambda c: identified(c, lambda: c.args["user_id"]),
            effect="require_approval",
        ),
        "    check: from_task(action.args.user_id) || from_user(action.args.user_id)\n"
        "    on_fail: {error: Nobody has named them., effect: require_approval}\n",
    ),
    with_rule(
        "reservations are looked at after the profile",
        Rule("profile_first", ("get_reservation_details",), lambda c: bool(c.world.users)),
        "    check: succeeded(state.ledger, 'get_user_details')\n    on_fail: Look at the profile first.\n",
    ),
    # what changes no verdict
    Edit(
        "another description",
        swapped("description: A cancelled reservation cannot be changed", "description: Nobody can change it"),
        lambda pack: pack,
    ),
    Edit(
        "halts",
        within("cancellation_allowed", swapped("    on_fail:\n", "    on_fail:\n      halt: true\n")),
        lambda pack: pack,
    ),
    moved_to_the_end("owner_identified"),
)
