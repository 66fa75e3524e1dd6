"""Invitations into teams: one by one or by CSV, behind signed links that expire."""

import csv
import io
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from allauth.account.models import EmailAddress
from django.conf import settings
from django.core import signing
from django.core.exceptions import ValidationError
from django.core.mail import EmailMessage
from django.core.validators import validate_email
from django.db import transaction
from django.db.models import Q
from django.urls import reverse
from django.utils.formats import date_format
from django.utils.translation import gettext as _

from app.accounts.links import absolute
from app.accounts.members import role_allow
from app.accounts.models import Invitation, Membership, Role, Team, User
from app.accounts.selectors import Caller, teams_to_manage
from app.accounts.services import membership_set, user_create
from app.common.clock import now
from app.common.errors import AppError, Conflict, InvalidInput, NotFound

_SALT = "accounts.invitation"
_COLUMNS = ("email", "name", "team", "role")
MOST_ROWS = 2000


@dataclass(frozen=True, slots=True)
class Wish:
    """Who is to be invited, into what, as what."""

    team: Team
    email: str
    name: str
    role: str


@transaction.atomic
def invitation_create(*, caller: Caller, wish: Wish) -> Invitation:
    """Invite somebody; an open invitation of the same address is renewed.

    Errors: InvalidInput, NotFound, NotAllowed, Conflict for somebody who is in the team already.
    """
    _check(caller, wish)
    return Invitation.objects.update_or_create(
        team=wish.team,
        email=wish.email,
        accepted_at=None,
        defaults={
            "name": wish.name,
            "role": wish.role,
            "invited_by_id": caller.user_id,
            "expires_at": now() + timedelta(days=settings.INVITE_DAYS),
        },
    )[0]


@transaction.atomic
def invitations_import(*, caller: Caller, team: Team, text: str) -> list[Invitation]:
    """Invite everybody in a CSV with the columns email, name, team and role; the last three may be left out.

    Errors: InvalidInput that names every row that is wrong; then nobody is invited.
    """
    wishes, wrong = [], []
    for number, row in _rows(text):
        try:
            wish = _wish(caller, team, row)
            _check(caller, wish)
            wishes.append(wish)
        except AppError as exc:
            wrong.append(_("Row %(number)s: %(why)s") % {"number": number, "why": exc.message})
    twice = {
        wish.email
        for wish in wishes
        if sum(w.email == wish.email and w.team == wish.team for w in wishes) > 1
    }
    wrong += [_("%(email)s is there twice for one team.") % {"email": email} for email in sorted(twice)]
    if wrong:
        raise InvalidInput(
            _("Nobody was invited. Correct these rows and send the file again."), detail={"rows": wrong}
        )
    return [invitation_create(caller=caller, wish=wish) for wish in wishes]


def invitation_link(invitation: Invitation) -> str:
    """The address under which the invitation is taken up."""
    token = signing.Signer(salt=_SALT).sign(str(invitation.id))
    return absolute(reverse("accounts:invitation", kwargs={"token": token}))


def invitation_mail(invitation: Invitation) -> None:
    """Send the link to whoever is invited."""
    by = str(invitation.invited_by or "An administrator")
    text = (
        f"{by} invites you to the team {invitation.team.name}, as {invitation.role}.\n\n"
        f"{invitation_link(invitation)}\n\n"
        f"The link works until {invitation.expires_at:%d %B %Y}. If you do not know {by}, do nothing."
    )
    EmailMessage(f"Tessera: {invitation.team.name} invites you", text, None, [invitation.email]).send()


def invitation_open(token: str, *, lock: bool = False) -> Invitation:
    """The invitation behind a link. Errors: NotFound, Conflict when it was used or is too old."""
    try:
        identity = UUID(signing.Signer(salt=_SALT).unsign(token))
    except (signing.BadSignature, ValueError) as exc:
        raise NotFound(_("This link is not whole. Copy it again from the mail, to its very end.")) from exc
    rows = Invitation.objects.select_related("team", "invited_by")
    found = (rows.select_for_update(of=("self",)) if lock else rows).filter(id=identity).first()
    if found is None:
        raise NotFound(_("This invitation was withdrawn."))
    if found.accepted_at:
        raise Conflict(_("This invitation was used already. Sign in to open the team."))
    if found.expires_at <= now():
        raise Conflict(
            _("This invitation ended on %(date)s.") % {"date": date_format(found.expires_at, "j F Y")}
        )
    return found


@transaction.atomic
def invitation_accept(*, token: str, user: User) -> Invitation:
    """Join the team. Errors: as opening it, and Conflict for an account with another address."""
    found = invitation_open(token, lock=True)
    if not is_for(found, user):
        raise Conflict(
            _("This invitation is for %(theirs)s, and you are signed in as %(yours)s.")
            % {"theirs": found.email, "yours": user.email}
        )
    present = Membership.objects.filter(team=found.team, user=user).first()
    if present is None:
        membership_set(team=found.team, user=user, role=found.role)
    found.accepted_at = now()
    found.save(update_fields=["accepted_at"])
    return found


@transaction.atomic
def invitation_sign_up(*, token: str, name: str, password: str) -> User:
    """A new account for whoever is invited, who then joins. Errors: as above, and Conflict where there is one."""
    found = invitation_open(token, lock=True)
    if account_exists(found.email):
        raise Conflict(_("There is an account with this address already. Sign in with it."))
    user = user_create(email=found.email, password=password, name=name)
    invitation_accept(token=token, user=user)
    user.default_team = found.team
    user.save(update_fields=["default_team"])
    return user


def invitation_end(*, caller: Caller, team: Team, invitation_id: UUID) -> None:
    """Withdraw an invitation that nobody took up. Errors: NotFound, NotAllowed."""
    found = Invitation.objects.filter(team=team, id=invitation_id, accepted_at=None).first()
    if found is None:
        raise NotFound(_("There is no such invitation any more."))
    role_allow(caller, team, found.role)
    found.delete()


def invitations_of(team: Team) -> list[Invitation]:
    """Those that wait, newest first; expired ones too, since they can be renewed."""
    return list(
        team.invitations.filter(accepted_at=None).select_related("team", "invited_by").order_by("-id")
    )


def is_for(invitation: Invitation, user: User) -> bool:
    """Whether an invitation is for this person: by an address that is known to be theirs."""
    return bool(EmailAddress.objects.filter(user=user, email=invitation.email, verified=True).exists())


def account_exists(email: str) -> bool:
    """Whether somebody has this address."""
    return User.objects.filter(email=email).exists() or EmailAddress.objects.filter(email=email).exists()


def _check(caller: Caller, wish: Wish) -> None:
    try:
        validate_email(wish.email)
    except ValidationError as exc:
        raise InvalidInput(_("“%(email)s” is no e-mail address.") % {"email": wish.email}) from exc
    if wish.role not in Role.values:
        raise InvalidInput(
            _("“%(role)s” is no role; there are %(roles)s.")
            % {"role": wish.role, "roles": ", ".join(Role.values)}
        )
    if len(wish.name) > 200:
        raise InvalidInput(_("This name is longer than 200 letters."))
    role_allow(caller, wish.team, wish.role)
    if Membership.objects.filter(team=wish.team, user__email=wish.email).exists():
        raise Conflict(
            _("%(email)s is in %(team)s already. Their role is changed in the list of members.")
            % {"email": wish.email, "team": wish.team.name}
        )


def _rows(text: str) -> list[tuple[int, dict[str, str]]]:
    """Rows by the number that a table program shows. Errors: InvalidInput for a file that cannot be read as such."""
    lines = text.removeprefix("\ufeff")
    heading = lines.split("\n", 1)[0]
    reader = csv.reader(io.StringIO(lines), delimiter=";" if heading.count(";") > heading.count(",") else ",")
    names: list[str] = []
    found: list[tuple[int, dict[str, str]]] = []
    for row in reader:
        cells = [cell.strip() for cell in row]
        if not any(cells):
            continue
        if not names:
            names = [cell.lower() for cell in cells]
            _check_heading(names)
        elif len(found) == MOST_ROWS:
            raise InvalidInput(
                _("The file has more than %(most)s rows. Send it in parts.") % {"most": MOST_ROWS}
            )
        else:
            found.append((reader.line_num, dict(zip(names, cells, strict=False))))
    if not found:
        raise InvalidInput(_("The file has no rows under its heading."))
    return found


def _check_heading(names: list[str]) -> None:
    strange = [name for name in names if name not in _COLUMNS]
    if "email" not in names or strange or len(set(names)) < len(names):
        raise InvalidInput(
            _("The first row has to name the columns: email, and if you like name, team and role.")
            + (" " + _("It has: %(names)s.") % {"names": ", ".join(strange)} if strange else "")
        )


def _wish(caller: Caller, team: Team, row: dict[str, str]) -> Wish:
    named = row.get("team", "")
    role = row.get("role", "").lower() or Role.MEMBER.value
    return Wish(
        _team_named(caller, named) if named else team, row.get("email", "").lower(), row.get("name", ""), role
    )


def _team_named(caller: Caller, name: str) -> Team:
    found = [team for team in teams_to_manage(caller) if name.lower() in {team.name.lower(), team.slug}]
    if len(found) == 1:
        return found[0]
    if found:
        raise InvalidInput(
            _("You look after %(count)s teams named “%(name)s”; write its short name, as in %(slug)s.")
            % {"count": len(found), "name": name, "slug": found[0].slug}
        )
    raise InvalidInput(_("You look after no team named “%(name)s”.") % {"name": name})


def invitations_forget(user: User) -> int:
    """Remove what invited this person, used or not: it holds their address and name. Returns how many."""
    addresses = [user.email, *EmailAddress.objects.filter(user=user).values_list("email", flat=True)]
    theirs = Q()
    for address in addresses:
        theirs |= Q(email__iexact=address)
    return Invitation.objects.filter(theirs).delete()[0]
