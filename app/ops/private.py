"""What belongs to one person alone, and what they gave to a team."""

from django.db.models import Q, QuerySet

from app.accounts.models import Team, User
from app.chat.models import Turn
from retrieval.models import Collection, Document


def personal_teams(user: User) -> list[Team]:
    """The teams that exist for this person alone."""
    return list(Team.objects.filter(memberships__user=user, is_personal=True).order_by("id"))


def private_collections(user: User) -> QuerySet[Collection]:
    """Collections of the personal team, and what was attached to the person's own conversations."""
    teams = [team.pk for team in personal_teams(user)]
    attached = Q(kind=Collection.Kind.CONVERSATION, created_by=principal(user))
    return Collection.objects.filter(Q(team_id__in=teams) | attached)


def documents_of(user: User) -> QuerySet[Document]:
    """What the person put in, private or for a team."""
    private = private_collections(user).values_list("pk", flat=True)
    return Document.objects.filter(Q(created_by=principal(user)) | Q(collection__in=list(private)))


def turns_of(user: User) -> QuerySet[Turn]:
    """What the person asked, in a conversation or without one."""
    return Turn.objects.filter(Q(conversation__owner=user) | Q(asked_by=user))


def principal(user: User) -> str:
    """The person as retrieval knows them."""
    return f"user:{user.pk}"
