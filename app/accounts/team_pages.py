"""The members of a team: who is in it, who is invited, and the page that an invitation opens."""

from typing import Any
from uuid import UUID

from allauth.account.forms import SetPasswordField
from allauth.account.utils import perform_login
from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.mixins import LoginRequiredMixin
from django.core.exceptions import PermissionDenied
from django.core.files import File
from django.core.validators import FileExtensionValidator
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.utils.decorators import method_decorator
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views import View
from django.views.decorators.cache import never_cache

from app.accounts.adapter import mail_is_sent
from app.accounts.inviting import (
    Wish,
    account_exists,
    invitation_accept,
    invitation_create,
    invitation_end,
    invitation_link,
    invitation_mail,
    invitation_open,
    invitation_sign_up,
    invitations_import,
    invitations_of,
    is_for,
)
from app.accounts.members import member_change, member_remove
from app.accounts.models import Invitation, Role, Team, User
from app.accounts.roles import roles_given_by
from app.accounts.selectors import Caller, caller_by_user, members_of, team_get
from app.common.clock import now
from app.common.errors import AppError, NotAllowed, NotFound

CSV_MAX_BYTES = 500_000


class InviteForm(forms.Form):
    """One person."""

    email = forms.EmailField(label=gettext_lazy("E-mail"))
    name = forms.CharField(max_length=200, required=False, label=gettext_lazy("Name"))
    role = forms.ChoiceField(choices=Role, initial=Role.MEMBER, label=gettext_lazy("As"))


class CsvForm(forms.Form):
    """Many."""

    file = forms.FileField(
        label=gettext_lazy("CSV file"), validators=[FileExtensionValidator(["csv", "txt"])]
    )

    def clean_file(self) -> "File[bytes]":
        """Of a size that a person can have checked."""
        sent: File[bytes] = self.cleaned_data["file"]
        if (sent.size or 0) > CSV_MAX_BYTES:
            raise forms.ValidationError(_("The file is larger than 500 kB. Send it in parts."))
        return sent


class JoinForm(forms.Form):
    """What a new person says of themselves."""

    name = forms.CharField(
        max_length=200, label=gettext_lazy("Name"), help_text=gettext_lazy("As your team will see it.")
    )
    password = SetPasswordField(label=gettext_lazy("Password"))


@method_decorator(never_cache, name="dispatch")
class _TeamView(LoginRequiredMixin, View):
    """Shared by all that changes a team: who asks, and which team."""

    caller: Caller
    team: Team

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """Only for those who look after the team; strangers learn nothing about it."""
        if isinstance(request.user, User):
            self.caller = caller_by_user(request.user)
            try:
                self.team = team_get(kwargs.pop("team_id"))
                self.caller.require_manager(self.team.id)
            except NotFound as exc:
                raise Http404 from exc
            except NotAllowed as exc:
                raise PermissionDenied from exc
            if self.team.is_personal:
                raise Http404
        return super().dispatch(request, *args, **kwargs)

    def page(self, *, status: int = 200, **more: Any) -> HttpResponse:
        """The page as it is, with what went wrong."""
        gives = roles_given_by(self.caller.role_in(self.team.id))
        waiting = [(row, invitation_link(row), row.expires_at <= now()) for row in invitations_of(self.team)]
        found = {
            "section": "account",
            "team": self.team,
            "members": [(row, row.role in gives) for row in members_of(self.team.id)],
            "gives": gives,
            "waiting": waiting,
            "invite": InviteForm(),
            "upload": CsvForm(),
        }
        return render(self.request, "accounts/members.html", found | more, status=status)

    def back(self, words: str) -> HttpResponse:
        """To the page, with a word on what was done."""
        messages.success(self.request, words)
        return redirect("accounts:members", self.team.id)


class MembersView(_TeamView):
    """The page, and an invitation by POST."""

    def get(self, request: HttpRequest) -> HttpResponse:
        return self.page()

    def post(self, request: HttpRequest) -> HttpResponse:
        form = InviteForm(request.POST)
        if not form.is_valid():
            return self.page(status=400, invite=form)
        data = form.cleaned_data
        try:
            made = invitation_create(
                caller=self.caller, wish=Wish(self.team, data["email"].lower(), data["name"], data["role"])
            )
        except AppError as exc:
            form.add_error(None, exc.message)
            return self.page(status=400, invite=form)
        return self.back(_told([made]))


class ImportView(_TeamView):
    """Many invitations by CSV, all or none."""

    def post(self, request: HttpRequest) -> HttpResponse:
        form = CsvForm(request.POST, request.FILES)
        if not form.is_valid():
            return self.page(status=400, upload=form)
        sent = form.cleaned_data["file"]
        try:
            made = invitations_import(
                caller=self.caller, team=self.team, text=sent.read().decode("utf-8-sig")
            )
        except UnicodeDecodeError:
            form.add_error("file", _("The file is not UTF-8. Save it as “CSV UTF-8” and send it again."))
        except AppError as exc:
            form.add_error("file", [exc.message, *exc.detail.get("rows", [])])
        else:
            return self.back(_told(made))
        return self.page(status=400, upload=form)


class MemberView(_TeamView):
    """Another role for somebody, or out of the team."""

    def post(self, request: HttpRequest, user_id: UUID) -> HttpResponse:
        role = request.POST.get("role", "")
        try:
            if "remove" in request.POST:
                row = member_remove(caller=self.caller, team=self.team, user_id=user_id)
                return self.back(_("%(person)s is no longer in the team.") % {"person": row.user})
            row = member_change(caller=self.caller, team=self.team, user_id=user_id, role=role)
        except AppError as exc:
            return self.page(status=exc.status, problem=exc.message)
        return self.back(
            _("The role of %(person)s is now: %(role)s.") % {"person": row.user, "role": row.role}
        )


class InvitationEndView(_TeamView):
    """Withdraw an invitation."""

    def post(self, request: HttpRequest, invitation_id: UUID) -> HttpResponse:
        try:
            invitation_end(caller=self.caller, team=self.team, invitation_id=invitation_id)
        except AppError as exc:
            return self.page(status=exc.status, problem=exc.message)
        return self.back(_("The invitation is withdrawn; its link opens nothing any more."))


@method_decorator(never_cache, name="dispatch")
class InvitationView(View):
    """What the link of an invitation opens: join as who one is, sign in first, or make an account."""

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """An invitation that does not work says why."""
        try:
            self.invitation = invitation_open(kwargs["token"])
            return super().dispatch(request, *args, **kwargs)
        except AppError as exc:
            return render(request, "accounts/invitation_over.html", {"why": exc.message}, status=exc.status)

    def get(self, request: HttpRequest, token: str) -> HttpResponse:
        return self._page(request, JoinForm(initial={"name": self.invitation.name}))

    def post(self, request: HttpRequest, token: str) -> HttpResponse:
        if isinstance(request.user, User):
            joined = invitation_accept(token=token, user=request.user)
            messages.success(request, _("You are in %(team)s now.") % {"team": joined.team.name})
            return redirect("accounts:home")
        if settings.SSO_ONLY:
            return redirect(request.path)
        form = JoinForm(request.POST)
        if not form.is_valid():
            return self._page(request, form)
        data = form.cleaned_data
        user = invitation_sign_up(token=token, name=data["name"], password=data["password"])
        answer: HttpResponse = perform_login(request, user, email_verification="none", redirect_url="/")
        return answer

    def _page(self, request: HttpRequest, form: JoinForm) -> HttpResponse:
        person = request.user if isinstance(request.user, User) else None
        found = {
            "invitation": self.invitation,
            "form": form,
            "fits": person is not None and is_for(self.invitation, person),
            "has_account": account_exists(self.invitation.email),
        }
        return render(request, "accounts/invitation.html", found)


def _told(made: list[Invitation]) -> str:
    if mail_is_sent():
        for row in made:
            invitation_mail(row)
        return _("Invited: %(count)s. The links are in the mail.") % {"count": len(made)}
    words = _("Invited: %(count)s. This installation sends no mail: hand on the links below.")
    return words % {"count": len(made)}
