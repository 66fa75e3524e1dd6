"""Random interleavings of everything that can happen to a hold, against a model that is simple enough to trust."""

from collections.abc import Mapping
from decimal import Decimal
from uuid import UUID

import pytest
from django.db import connection, transaction
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from app.billing.credit import credit_correct, credit_grant
from app.billing.errors import BudgetExhausted
from app.billing.late import entry_adjust
from app.billing.models import Budget, LedgerEntry, Reservation
from app.billing.selectors import limits_remaining, totals
from app.billing.services import (
    budget_set,
    price_set,
    reservation_heartbeat,
    reservation_hold,
    reservation_release,
    reservation_settle,
    reservations_sweep,
)
from app.billing.types import Buckets, Hold, Payer
from app.billing.verification import ledger_verify
from app.common.models import uuid7
from tests.integration.billing.conftest import MODEL, PRICE, used

D = Decimal
MILLIONTH = D("0.000001")
LIMITS = {"installation": D("0.020"), "team": D("0.012"), "allowance": D("0.008")}
COUNTS = st.integers(min_value=0, max_value=2000)


class Holds(RuleBasedStateMachine):
    """Two people of one team. Prices are 1 and 2 millionths a token, so money is counted in whole millionths."""

    def __init__(self) -> None:
        super().__init__()
        self.block = transaction.atomic()
        self.block.__enter__()
        Budget.objects.update(active=False)
        price_set(price_key=MODEL, rates=PRICE, approved_by="tests")
        team = uuid7()
        self.people = [Payer(team_id=team, account_id=uuid7()) for _ in range(2)]
        budget_set(scope="installation", unit="money", limit=LIMITS["installation"], period="month")
        budget_set(scope="team", unit="money", limit=LIMITS["team"], period="month", team_id=team)
        budget_set(scope="team", unit="requests", limit=9, period="month", team_id=team)
        budget_set(scope="allowance", unit="money", limit=LIMITS["allowance"], period="month")
        self.running: dict[UUID, tuple[int, int, int]] = {}
        """Reservation: person, held in millionths, seen output."""
        self.expired: dict[UUID, tuple[int, int, int]] = {}
        self.estimated: dict[UUID, tuple[int, int]] = {}
        """Billed by the sweeper: person, millionths."""
        self.spent = [0, 0]
        self.turns = 0
        self.settled: dict[UUID, tuple[int, int]] = {}
        """Settled in time: person, millionths."""
        self.truths = 0
        self.grants: list[int] = []
        self.credit: int | None = None
        """Given, in millionths; None: the team never had any."""
        self.free: set[UUID] = set()
        """Calls held before the first grant: they do not count against it."""
        self.overshot = 0
        """Millionths booked beyond what was held: the only way past a limit."""

    def teardown(self) -> None:
        transaction.set_rollback(True)
        self.block.__exit__(None, None, None)

    def pick(self, kind: Mapping[UUID, object], data: st.DataObject) -> UUID:
        return data.draw(st.sampled_from(sorted(kind)))

    def book(self, who: int, used_: int, held: int) -> None:
        self.spent[who] += used_
        self.turns += 1
        self.overshot += max(0, used_ - held)

    @rule(who=st.sampled_from([0, 1]), given=COUNTS, cap=COUNTS, floor=COUNTS)
    def hold(self, who: int, given: int, cap: int, floor: int) -> None:
        item = Hold(
            reservation_id=uuid7(), payer=self.people[who], kind="chat", price_key=MODEL,
            input_tokens=given, output_tokens=cap, min_output_tokens=min(floor, cap),
        )  # fmt: skip
        limits = [state for state in limits_remaining(self.people[who]) if state.unit == "money"]
        room = min(state.limit - state.spent - state.held for state in limits)
        try:
            held = reservation_hold(hold=item)
        except BudgetExhausted:
            full = len(self.running) + self.turns >= 9
            assert full or room < (given + 2 * item.min_output_tokens) * MILLIONTH
            assert not Reservation.objects.filter(id=item.reservation_id).exists()
            return
        assert held.price == (given + 2 * held.output_tokens) * MILLIONTH
        assert held.price == 0 or held.price <= room
        assert held.shrunk is (held.output_tokens < cap)
        self.running[item.reservation_id] = (who, given + 2 * held.output_tokens, 0)

    @precondition(lambda self: self.running)
    @rule(data=st.data(), given=COUNTS, generated=COUNTS)
    def settle(self, data: st.DataObject, given: int, generated: int) -> None:
        key = self.pick(self.running, data)
        who, held, _ = self.running.pop(key)
        settled = reservation_settle(reservation_id=key, attempts=[used(given, generated)])
        assert settled.price == (given + 2 * generated) * MILLIONTH
        assert reservation_settle(reservation_id=key, attempts=[used(1, 1)]).price == settled.price
        self.book(who, given + 2 * generated, held)
        self.settled[key] = (who, given + 2 * generated)

    @precondition(lambda self: self.running)
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        key = self.pick(self.running, data)
        del self.running[key]
        assert reservation_release(reservation_id=key).state == "released"

    @precondition(lambda self: self.running)
    @rule(data=st.data(), output=st.integers(min_value=1, max_value=500))
    def beat(self, data: st.DataObject, output: int) -> None:
        key = self.pick(self.running, data)
        who, held, seen = self.running[key]
        assert reservation_heartbeat(reservation_id=key, output_tokens=output)
        self.running[key] = (who, held, max(seen, output))

    @precondition(lambda self: self.running)
    @rule(data=st.data())
    def die(self, data: st.DataObject) -> None:
        key = self.pick(self.running, data)
        who, held, seen = self.running.pop(key)
        Reservation.objects.filter(id=key).update(expires_at="2020-01-01T00:00:00Z")
        assert reservations_sweep() == [key]
        if seen:
            given = Reservation.objects.get(id=key).held_input_tokens
            self.estimated[key] = (who, given + 2 * seen)
            self.book(who, given + 2 * seen, held)
        else:
            self.expired[key] = (who, held, seen)

    @precondition(lambda self: self.expired)
    @rule(data=st.data(), given=COUNTS, generated=COUNTS)
    def come_late(self, data: st.DataObject, given: int, generated: int) -> None:
        key = self.pick(self.expired, data)
        who, _, _ = self.expired.pop(key)
        assert reservation_settle(reservation_id=key, attempts=[used(given, generated)]).late
        self.book(who, given + 2 * generated, 0)

    @precondition(lambda self: self.estimated)
    @rule(data=st.data(), given=COUNTS, generated=COUNTS)
    def tell_the_truth(self, data: st.DataObject, given: int, generated: int) -> None:
        key = self.pick(self.estimated, data)
        who, guessed = self.estimated.pop(key)
        reservation_settle(reservation_id=key, attempts=[used(given, generated)])
        self.turns -= 1
        self.book(who, given + 2 * generated - guessed, 0)

    @rule(millionths=st.integers(min_value=1, max_value=9000))
    def grant(self, millionths: int) -> None:
        """From the first grant on the team has a limit of its own credit as well."""
        team = self.people[0].team_id
        self.grants.append(
            credit_grant(team_id=team, amount=millionths * MILLIONTH, source="tests", granted_by="tests")
        )
        if self.credit is None:
            self.credit, self.free = 0, set(self.running) | set(self.expired) | set(self.estimated)
        self.credit += millionths

    @precondition(lambda self: self.grants)
    @rule(data=st.data(), millionths=st.integers(min_value=1, max_value=9000))
    def correct(self, data: st.DataObject, millionths: int) -> None:
        grant = data.draw(st.sampled_from(self.grants))
        credit_correct(
            team_id=self.people[0].team_id,
            grant_id=grant,
            amount=millionths * MILLIONTH,
            reason="t",
            corrected_by="t",
        )
        self.credit += millionths

    @precondition(lambda self: self.settled)
    @rule(data=st.data(), given=COUNTS, generated=COUNTS)
    def adjust(self, data: st.DataObject, given: int, generated: int) -> None:
        """The provider's invoice says otherwise."""
        key = self.pick(self.settled, data)
        who, booked = self.settled[key]
        (charge, *_) = LedgerEntry.objects.filter(reservation_id=key, kind="charge")
        self.truths += 1
        entry_adjust(
            entry_id=charge.id,
            buckets=Buckets(input=given, output=generated),
            reason="invoice",
            actor="tests",
            dedupe_key=str(self.truths),
        )
        self.settled[key] = (who, given + 2 * generated)
        self.spent[who] += given + 2 * generated - booked
        self.overshot += max(0, given + 2 * generated - booked)

    @rule()
    def fold(self) -> None:
        """At any moment, because a hold does it at random."""
        with connection.cursor() as cursor:
            cursor.execute("SELECT billing_fold(array_agg(id)) FROM billing_budgetwindow")

    @invariant()
    def balances_are_what_happened(self) -> None:
        for who, payer in enumerate(self.people):
            held = [sum(h for p, h, _ in self.running.values() if p == person) for person in (0, 1)]
            for state in limits_remaining(payer):
                own = state.scope == "allowance"
                if state.scope == "prepaid":
                    assert state.limit == self.credit * MILLIONTH
                    assert (
                        state.held
                        == sum(h for k, (_, h, _) in self.running.items() if k not in self.free) * MILLIONTH
                    )
                    assert state.spent + state.held <= state.limit + self.overshot * MILLIONTH
                    continue
                if state.unit == "requests":
                    assert (state.spent, state.held) == (self.turns, len(self.running))
                    continue
                assert state.spent == (self.spent[who] if own else sum(self.spent)) * MILLIONTH
                assert state.held == (held[who] if own else sum(held)) * MILLIONTH
                assert state.spent + state.held <= state.limit + self.overshot * MILLIONTH

    @invariant()
    def the_ledger_replays(self) -> None:
        assert ledger_verify().differences == ()
        assert totals().price == sum(self.spent) * MILLIONTH


TestHolds = pytest.mark.django_db(Holds.TestCase)
TestHolds.settings = settings(
    max_examples=12,
    stateful_step_count=20,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
