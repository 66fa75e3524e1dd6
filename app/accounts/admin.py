"""People, teams, memberships and keys for staff: who there is and what they may, never what they wrote."""

from typing import TYPE_CHECKING, Any

from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount, SocialApp, SocialToken
from allauth.usersessions.models import UserSession
from django import forms
from django.contrib import admin, messages
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.contrib.auth.forms import BaseUserCreationForm, UserChangeForm
from django.contrib.auth.models import Group
from django.db.models import QuerySet
from django.http import HttpRequest

from app.accounts.admin_providers import IdentityProviderAdmin
from app.accounts.links import password_link
from app.accounts.models import ApiKey, IdentityProvider, Membership, Team, User
from app.accounts.services import (
    address_confirm,
    address_set,
    key_revoke,
    membership_end,
    membership_set,
    person_update,
    team_create,
    user_create,
)
from app.common.admin_site import ReadOnly, RowAdmin, RowForm, StaffOnly, staff_sign_in

if TYPE_CHECKING:
    _UserAdmin = DjangoUserAdmin[User]
    _CreationForm = BaseUserCreationForm[User]
    _ChangeForm = UserChangeForm[User]
    _TeamInline = admin.TabularInline[Membership, Team]
else:
    _UserAdmin, _CreationForm, _ChangeForm = DjangoUserAdmin, BaseUserCreationForm, UserChangeForm
    _TeamInline = admin.TabularInline

admin.site.site_header = admin.site.site_title = "Tessera administration"
admin.site.site_url = "/"
# Lists of money are wide.
admin.site.enable_nav_sidebar = False
# One sign-in page for the whole product, with its words and its limits.
admin.site.login = staff_sign_in  # type: ignore[method-assign]
# What somebody may do hangs on roles in teams and on the staff flag.
admin.site.unregister(Group)
# Addresses, factors, sessions and identities are people's own; staff act on the person.
for _model in (EmailAddress, Authenticator, SocialAccount, SocialApp, SocialToken, UserSession):
    admin.site.unregister(_model)


class PersonAddForm(_CreationForm):
    """Somebody new; a personal team is made with them."""

    class Meta:
        model = User
        fields = ("email", "name", "is_staff")
        field_classes: dict[str, type[forms.Field]] = {}

    def clean_email(self) -> str:
        """In lower case, as the sign-in page looks for it."""
        return str(self.cleaned_data["email"]).lower()


class PersonForm(_ChangeForm):
    """Everything but the password, which has a page of its own."""

    acting: User
    """Who is at the keyboard."""

    class Meta:
        model = User
        fields = "__all__"
        field_classes: dict[str, type[forms.Field]] = {}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["default_team"] = forms.ModelChoiceField(
            Team.objects.filter(memberships__user=self.instance),
            help_text="Pays unless a conversation names another.",
        )

    def clean_email(self) -> str:
        """In lower case, as the sign-in page looks for it."""
        return str(self.cleaned_data["email"]).lower()

    def clean(self) -> dict[str, Any]:
        """Nobody locks the door behind themselves."""
        values = super().clean() or self.cleaned_data
        if self.instance.pk == self.acting.pk and not (values.get("is_staff") and values.get("is_active")):
            raise forms.ValidationError(
                "You would lose your own access here; let another administrator do this."
            )
        return values


@admin.register(User)
class PersonAdmin(StaffOnly, _UserAdmin):
    """People are suspended, not deleted: what they own stays owned."""

    can_delete = False
    form, add_form = PersonForm, PersonAddForm
    fieldsets = (
        (None, {"fields": ("email", "password", "name")}),
        ("May", {"fields": ("is_active", "is_staff", "default_team")}),
        ("Facts", {"fields": ("account_id", "last_login", "created_at")}),
    )
    add_fieldsets = ((None, {"fields": ("email", "name", "is_staff", "password1", "password2")}),)
    readonly_fields = ("account_id", "last_login", "created_at")
    list_display = ("email", "name", "is_active", "is_staff", "default_team", "last_login")
    list_filter = ("is_staff", "is_active")
    list_select_related = ("default_team",)
    search_fields = ("email", "name", "account_id")
    ordering = ("email",)
    filter_horizontal = ()
    actions = ("link_for_password", "confirm_address")

    @admin.action(description="Link for a new password")
    def link_for_password(self, request: HttpRequest, queryset: QuerySet[User]) -> None:
        """For installations that send no mail: staff hand the link on themselves."""
        for person in queryset:
            self.log_change(request, person, "Made a link for a new password.")
            self.message_user(request, f"{person.email}, once and for three days: {password_link(person)}")

    @admin.action(description="Confirm the address")
    def confirm_address(self, request: HttpRequest, queryset: QuerySet[User]) -> None:
        """Likewise for addresses of people who signed up or changed theirs."""
        for person in queryset:
            address = address_confirm(user=person)
            self.log_change(request, person, "Confirmed the address.")
            self.message_user(request, f"{address} is confirmed.", messages.SUCCESS)

    def get_form(
        self, request: HttpRequest, obj: User | None = None, change: bool = False, **kwargs: Any
    ) -> Any:
        """The form, knowing who fills it in."""
        form: Any = super().get_form(request, obj, change=change, **kwargs)
        form.acting = request.user
        return form

    def save_model(self, request: HttpRequest, obj: User, form: Any, change: bool) -> None:
        """A new person gets what everybody has, through the service."""
        if change:
            person_update(user=obj, before=User.objects.get(pk=obj.pk))
            if "email" in form.changed_data:
                address_set(user=obj, email=obj.email)
            return
        data = form.cleaned_data
        made = user_create(
            email=data["email"], password=data["password1"], name=data["name"], is_staff=data["is_staff"]
        )
        obj.pk = made.pk
        obj.refresh_from_db()


class TeamAddForm(RowForm[Team]):
    """A team with its first owner."""

    owner = forms.ModelChoiceField(User.objects.filter(is_active=True).order_by("email"))

    class Meta:
        model = Team
        fields = ("name",)


class MembersInline(ReadOnly, _TeamInline):
    """Who is in a team; changed under memberships."""

    model = Membership
    fields = ("user", "role", "created_at")
    readonly_fields = fields
    show_change_link = True


@admin.register(Team)
class TeamAdmin(StaffOnly, RowAdmin[Team]):
    """Deleting a team would delete its people's conversations, so staff cannot."""

    can_delete = False
    list_display = ("name", "slug", "is_personal", "level", "created_at")
    list_filter = ("is_personal", "level")
    search_fields = ("name", "slug", "id")
    readonly_fields = ("id", "slug", "is_personal", "created_at")
    inlines = (MembersInline,)

    def get_form(
        self, request: HttpRequest, obj: Team | None = None, change: bool = False, **kwargs: Any
    ) -> Any:
        """Another form for a new one."""
        extra = {} if obj else {"form": TeamAddForm}
        return super().get_form(request, obj, change, **extra | kwargs)

    def get_fields(self, request: HttpRequest, obj: Team | None = None) -> Any:
        """Of a new one only what the service asks for."""
        return ("name", "level", "slug", "is_personal", "id", "created_at") if obj else ("name", "owner")

    def get_inlines(self, request: HttpRequest, obj: Team | None) -> Any:
        """A team that is not there yet has no members."""
        return self.inlines if obj else ()

    def save_model(self, request: HttpRequest, obj: Team, form: Any, change: bool) -> None:
        """A new team through the service, which makes its slug and its owner."""
        if change:
            super().save_model(request, obj, form, change)
            return
        obj.pk = team_create(name=form.cleaned_data["name"], owner=form.cleaned_data["owner"]).pk
        obj.refresh_from_db()


@admin.register(Membership)
class MembershipAdmin(StaffOnly, RowAdmin[Membership]):
    """Roles in shared teams; a personal team belongs to its person for good."""

    list_display = ("team", "user", "role", "created_at")
    list_filter = ("role",)
    list_select_related = ("team", "user")
    search_fields = ("team__name", "user__email", "user__name")
    fields = ("team", "user", "role")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Membership]:
        """Without personal teams."""
        return super().get_queryset(request).filter(team__is_personal=False)

    def get_readonly_fields(self, request: HttpRequest, obj: Membership | None = None) -> tuple[str, ...]:
        """Only the role of an existing one changes."""
        return ("team", "user") if obj else ()

    def formfield_for_foreignkey(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """Shared teams alone can take somebody in."""
        if db_field.name == "team":
            kwargs["queryset"] = Team.objects.filter(is_personal=False).order_by("name")
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    def save_model(self, request: HttpRequest, obj: Membership, form: Any, change: bool) -> None:
        """Through the service."""
        obj.pk = membership_set(team=obj.team, user=obj.user, role=obj.role).pk

    def delete_model(self, request: HttpRequest, obj: Membership) -> None:
        """Through the service."""
        membership_end(membership=obj)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Membership]) -> None:
        """Each as if it were the only one."""
        for row in queryset:
            self.delete_model(request, row)


@admin.register(ApiKey)
class ApiKeyAdmin(ReadOnly, RowAdmin[ApiKey]):
    """Keys as their holders made them; the key itself is nowhere, only its first characters are."""

    list_display = ("prefix", "name", "team", "user", "last_used_at", "expires_at", "revoked_at")
    list_filter = (("revoked_at", admin.EmptyFieldListFilter), "last_used_at")
    list_select_related = ("team", "user")
    search_fields = ("prefix", "name", "team__name", "user__email")
    fields = (
        "prefix", "name", "team", "user", "scopes", "models_allowed", "networks", "budget", "created_at",
        "last_used_at", "expires_at", "revoked_at",
    )  # fmt: skip
    ordering = ("-id",)
    actions = ("revoke",)

    @admin.action(description="Revoke the selected keys, for good")
    def revoke(self, request: HttpRequest, queryset: QuerySet[ApiKey]) -> None:
        """From now on they open nothing."""
        present = list(queryset.filter(revoked_at=None))
        for key in present:
            key_revoke(key=key)
            self.log_change(request, key, "Revoked.")
        self.message_user(request, f"Keys revoked: {len(present)}.", messages.SUCCESS)


admin.site.register(IdentityProvider, IdentityProviderAdmin)
