"""What erasing a person does with every column that may name one: a list that a new column has to join, and a look at
every table.
"""

import json
from collections import Counter
from collections.abc import Iterator

import pytest
from django.apps import apps
from django.db import connection, models

from app.accounts.inviting import Wish, invitation_create
from app.accounts.models import Invitation, Team, User
from app.accounts.selectors import caller_by_user
from app.api.jobs import job_webhook_create
from app.api.models import JobDelivery, JobWebhook
from app.chat.attaching import attachments_collection
from app.chat.import_rows import conversations_import
from app.chat.importing import conversations_of
from app.chat.sharing import share_create
from app.common.clock import now
from app.common.models import uuid7
from app.ops.exports import export_begin, export_make
from app.ops.person_erase import person_erase
from tests.factories import conversation_make, document_make, key_make, team_make, turn_make, user_make

WORD = "zanzibarite"

GOES = "goes with the person"
ENDS = "removed by person_erase itself"
NOBODY = "set to nobody; the row is the team's"
OPAQUE = "stays: an opaque id that points at nobody afterwards"
OTHERS = "names no person: a team, a key, a process, a role"
FATE = {
    "account.EmailAddress.email": GOES,
    "account.EmailAddress.user": GOES,
    "account.EmailConfirmation.email_address": GOES,
    "accounts.ApiKey.user": GOES,
    "accounts.Invitation.email": ENDS,
    "accounts.Invitation.invited_by": NOBODY,
    "accounts.Membership.user": GOES,
    "accounts.Team.members": GOES,
    "accounts.User.account_id": GOES,
    "accounts.User.email": GOES,
    "accounts.User_groups.user": GOES,
    "accounts.User_user_permissions.user": GOES,
    "admin.LogEntry.user": GOES,
    "api.IdempotencyKey.owner": ENDS,
    "api.JobWebhook.user": GOES,
    "audit.AuditEntry.actor_account": OPAQUE,
    "audit.AuditEntry.actor_key": OPAQUE,
    "billing.Budget.set_by": OPAQUE,
    "billing.Budget.subject": OPAQUE,
    "billing.BudgetWindow.subject": OPAQUE,
    "billing.CreditMovement.actor": OPAQUE,
    "billing.ExchangeRate.entered_by": OPAQUE,
    "billing.LedgerEntry.account_id": OPAQUE,
    "billing.LedgerEntry.actor": OPAQUE,
    "billing.LimitRequest.account_id": OPAQUE,
    "billing.LimitRequest.decided_by": OPAQUE,
    "billing.Pause.set_by": OPAQUE,
    "billing.PriceVersion.approved_by": OPAQUE,
    "billing.RateLimit.set_by": OPAQUE,
    "billing.RateLimit.subject": OPAQUE,
    "billing.Reservation.account_id": OPAQUE,
    "billing.Reservation.settled_by": OTHERS,
    "billing.Rollup.account_id": OPAQUE,
    "billing.Statement.issued_by": OPAQUE,
    "billing.TeamRate.approved_by": OPAQUE,
    "chat.Assistant.created_by": NOBODY,
    "chat.Conversation.owner": GOES,
    "chat.Turn.asked_by": NOBODY,
    "chat.TurnTiming.served_by": OTHERS,
    "mfa.Authenticator.user": GOES,
    "ops.Export.user": GOES,
    "ops.PersonReceipt.account_id": OPAQUE,
    "ops.PersonReceipt.done_by": OPAQUE,
    "retrieval.Collection.created_by": OPAQUE,
    "retrieval.Document.created_by": OPAQUE,
    "retrieval.Document.lease_owner": OTHERS,
    "retrieval.Grant.created_by": OPAQUE,
    "retrieval.Grant.principal": ENDS,
    "retrieval.Receipt.done_by": OPAQUE,
    "socialaccount.SocialAccount.user": GOES,
    "socialaccount.SocialToken.account": GOES,
    "usersessions.UserSession.user": GOES,
}
"""What becomes of each column that may name somebody."""
_NAMES = ("account", "actor", "email", "owner", "person", "principal", "subject", "user", "_by")
_NOT_NAMES = {"factor", "is_personal", "is_superuser", "user_agent", "user_permissions"}


def naming() -> Iterator[tuple[str, models.Field]]:
    """Columns that point at a person, hold an address, or are called as one that names somebody is."""
    for model in apps.get_models(include_auto_created=True):
        for field in [*model._meta.fields, *model._meta.many_to_many]:
            points = field.is_relation and field.related_model is User
            called = any(part in field.name for part in _NAMES) and field.name not in _NOT_NAMES
            if (points or called or isinstance(field, models.EmailField)) and not _own_key(field):
                yield f"{model._meta.label}.{field.name}", field


def _own_key(field: models.Field) -> bool:
    return field.primary_key


def test_every_column_that_may_name_somebody_is_on_the_list() -> None:
    found = dict(naming())
    assert set(found) - set(FATE) == set(), "say what person_erase does with these, and see that it does"
    assert set(FATE) - set(found) == set(), "these are gone"
    # What points at a person by the database's own means does as the list says.
    does = {models.CASCADE: GOES, models.SET_NULL: NOBODY}
    pointing = {
        name: does[field.remote_field.on_delete]
        for name, field in found.items()
        if field.is_relation and not field.many_to_many
    }
    assert pointing == {name: FATE[name] for name in pointing}


def tables_with(*words: str) -> Counter[str]:
    """Rows of each table in which one of these words stands, in whatever column."""
    found: Counter[str] = Counter()
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            pattern = "|".join(words)
            cursor.execute(f'SELECT count(*) FROM "{table}" row WHERE row::text ~* %s', [pattern])
            found[table] = cursor.fetchone()[0]
    return +found


@pytest.fixture
def leaver(originals_dir: object, settings: object) -> User:
    """Somebody with a row of each kind that came after erasing was first written."""
    colleague = user_make()
    team = team_make(owner=colleague)
    user = user_make(team=team, email=f"zoe@{WORD}.example")
    user.name = f"Zoe {WORD}"
    user.save()
    other = team_make(owner=colleague)
    boss, own = caller_by_user(colleague), caller_by_user(user)
    invitation_create(caller=boss, wish=Wish(other, user.email, user.name, "member"))
    Invitation.objects.create(
        team=team,
        email=user.email.upper(),
        role="member",
        accepted_at=now(),
        expires_at=now(),
        invited_by=user,
    )
    hook, _ = job_webhook_create(caller=own, name=WORD, url=f"https://{WORD}.example/hook")
    JobDelivery.objects.create(
        webhook=hook, event_id=uuid7(), type="turn.finished", data={"turn": WORD}, state="pending",
        created_at=now(), next_at=now(),
    )  # fmt: skip
    conversation = conversation_make(user=user, team=team, title=WORD)
    turn_make(conversation=conversation, question=WORD, answer=WORD)
    share_create(conversation=conversation)
    document_make(
        collection=attachments_collection(caller=own, conversation=conversation),
        content=WORD.encode(),
        name=WORD,
    )
    said = {"author": {"role": "user"}, "content": {"parts": [WORD]}, "id": "q"}
    node = {"q": {"id": "q", "parent": None, "message": said, "children": []}}
    conversations_import(
        user=user, conversations=conversations_of([{"title": WORD, "mapping": node}], Counter())
    )
    key_make(user=user, team=team)
    export_make(export_id=export_begin(user=user).pk)
    return user


@pytest.mark.django_db
def test_no_word_of_an_erased_person_stands_in_any_table(leaver: User, broker: object) -> None:
    before = tables_with(WORD)
    assert {"accounts_invitation", "api_jobwebhook", "api_jobdelivery", "chat_turn"} <= set(before)
    user_id = str(leaver.pk)
    receipt = person_erase(user=leaver, done_by="tests")
    assert tables_with(WORD) == {}
    assert (receipt.counts["invitations"], receipt.counts["webhooks"]) == (2, 1)
    assert not JobWebhook.objects.exists() and WORD not in json.dumps(receipt.counts)
    # The id itself stays in what is the team's, where nothing says any more whose it was.
    opaque = {"retrieval_receipt", "audit_auditentry", "retrieval_document", "retrieval_collection"}
    assert set(tables_with(user_id)) <= opaque
    assert Team.objects.filter(name="Erased person").count() == 1
