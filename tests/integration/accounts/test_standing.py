"""Who may go on while their answers run, and who may not any more."""

from datetime import timedelta

import pytest

from app.accounts.models import ApiKey, Membership, Role, User
from app.accounts.selectors import caller_by_key, caller_by_user
from app.accounts.services import key_revoke, membership_set
from app.accounts.standing import caller_stands, fallen, standing_of
from app.common.clock import now
from tests.factories import key_make, team_make, user_make

pytestmark = pytest.mark.django_db

ENDS = {
    "revoked": lambda user, team, key: key_revoke(key=key),
    "expired": lambda user, team, key: ApiKey.objects.filter(id=key.id).update(
        expires_at=now() - timedelta(seconds=1)
    ),
    "deleted": lambda user, team, key: key.delete(),
    "suspended": lambda user, team, key: User.objects.filter(id=user.id).update(is_active=False),
    "erased": lambda user, team, key: user.delete(),
    "left the team": lambda user, team, key: Membership.objects.filter(user=user, team=team).delete(),
    "made a viewer": lambda user, team, key: membership_set(team=team, user=user, role=Role.VIEWER),
}


@pytest.mark.parametrize("end", ENDS)
def test_what_ends_a_key_and_what_ends_a_session(end):
    team = team_make(owner=user_make())
    user = user_make(team=team)
    key = key_make(user=user, team=team)
    by_key, by_session = caller_by_key(key.plain), caller_by_user(user)
    assert by_key is not None
    assert caller_stands(by_key, team.id)
    assert caller_stands(by_session, team.id)
    ENDS[end](user, team, key.row)
    assert not caller_stands(by_key, team.id)
    assert caller_stands(by_session, team.id) == (end in {"revoked", "expired", "deleted"})
    # A reader spends nothing, so their role does not matter to them.
    assert caller_stands(by_session) == (end not in {"suspended", "erased"})


def test_a_key_of_a_team_stands_without_a_person():
    owner = user_make()
    team = team_make(owner=owner)
    caller = caller_by_key(key_make(user=None, team=team).plain)
    assert caller_stands(caller, team.id)
    Membership.objects.filter(user=owner, team=team).delete()
    assert caller_stands(caller, team.id)
    team.delete()
    assert not caller_stands(caller, team.id)


def test_many_are_asked_for_in_four_queries(django_assert_max_num_queries):
    team = team_make(owner=user_make())
    people = [user_make(team=team) for _ in range(5)]
    callers = [caller_by_user(person) for person in people]
    callers += [caller_by_key(key_make(user=person, team=team).plain) for person in people]
    callers.append(caller_by_key(key_make(user=None, team=team).plain))
    gone = people[2]
    User.objects.filter(id=gone.id).update(is_active=False)
    with django_assert_max_num_queries(5):
        found = fallen({standing_of(caller, team.id) for caller in callers})
    assert {standing.user_id for standing in found} == {gone.id}
    assert len(found) == 2
