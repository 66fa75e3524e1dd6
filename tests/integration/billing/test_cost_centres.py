"""Cost centres are pinned on what is booked: the key's, else the team's, as they were then."""

import pytest

from app.accounts.models import ApiKey, Team
from app.billing.models import LedgerEntry
from app.billing.services import reservation_hold, reservation_settle
from app.billing.types import Payer
from app.common.models import uuid7
from tests.factories import key_make, team_make, user_make
from tests.integration.billing.conftest import MakeHold, used

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("roomy")]


@pytest.mark.parametrize(
    ("of_team", "of_key", "pinned"),
    [("4711", "", "4711"), ("4711", "4712", "4712"), ("", "4712", "4712"), ("", "", "")],
)
def test_the_keys_goes_before_the_teams(hold: MakeHold, of_team: str, of_key: str, pinned: str) -> None:
    user = user_make()
    team = team_make(owner=user)
    key = key_make(user=user, team=team).row
    Team.objects.filter(id=team.id).update(cost_centre=of_team)
    ApiKey.objects.filter(id=key.id).update(cost_centre=of_key)
    item = hold(payer=Payer(team_id=team.id, key_id=key.id))
    reservation_hold(hold=item)
    reservation_settle(reservation_id=item.reservation_id, attempts=[used()])
    assert LedgerEntry.objects.get().cost_centre == pinned


def test_corrections_go_where_the_first_entry_went(hold: MakeHold) -> None:
    team = team_make(owner=user_make())
    Team.objects.filter(id=team.id).update(cost_centre="before")
    item = hold(payer=Payer(team_id=team.id))
    reservation_hold(hold=item)
    reservation_settle(reservation_id=item.reservation_id, attempts=[used(estimated=True)], by_sweeper=True)
    Team.objects.filter(id=team.id).update(cost_centre="after")
    reservation_settle(reservation_id=item.reservation_id, attempts=[used(output=7)])
    assert list(LedgerEntry.objects.values_list("cost_centre", flat=True)) == ["before"] * 3


def test_who_is_gone_has_none(hold: MakeHold) -> None:
    item = hold(payer=Payer(team_id=uuid7(), key_id=uuid7()))
    reservation_hold(hold=item)
    reservation_settle(reservation_id=item.reservation_id, attempts=[used()])
    assert LedgerEntry.objects.get().cost_centre == ""
