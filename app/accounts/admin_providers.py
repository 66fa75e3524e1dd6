"""Identity providers for staff. The issuer and the short name stay: they are half of each identity."""

from typing import TYPE_CHECKING, Any

from allauth.socialaccount.models import SocialAccount
from django import forms
from django.contrib import admin
from django.http import HttpRequest

from app.accounts.links import absolute
from app.accounts.models import GroupRule, IdentityProvider, Team
from app.common.admin_site import RowAdmin, RowForm, StaffOnly
from app.common.crypto import encrypt
from app.common.errors import InvalidInput
from app.common.outbound import address_check

if TYPE_CHECKING:
    _RuleInline = admin.TabularInline[GroupRule, IdentityProvider]
else:
    _RuleInline = admin.TabularInline


class ProviderForm(RowForm[IdentityProvider]):
    """The secret goes in and never comes out."""

    new_secret = forms.CharField(
        required=False,
        label="Client secret",
        widget=forms.PasswordInput,
        help_text="Empty: it stays as it is. It is kept encrypted and never shown.",
    )

    class Meta:
        model = IdentityProvider
        exclude = ("secret",)

    def clean_slug(self) -> str:
        """Not a name that means something else."""
        slug = str(self.cleaned_data["slug"])
        if slug == "openid_connect":
            raise forms.ValidationError("Choose another short name.")
        return slug

    def clean_issuer(self) -> str:
        """As the provider writes it. Its host may be private: staff chose it."""
        issuer = str(self.cleaned_data["issuer"]).rstrip("/")
        try:
            return address_check(issuer, trusted=[issuer.partition("://")[2].partition("/")[0]])
        except InvalidInput as exc:
            raise forms.ValidationError(exc.message) from exc


class RulesInline(StaffOnly, _RuleInline):
    """Groups, and what they mean."""

    model = GroupRule
    extra = 1

    def formfield_for_foreignkey(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """Shared teams alone."""
        if db_field.name == "team":
            kwargs["queryset"] = Team.objects.filter(is_personal=False).order_by("name")
        return super().formfield_for_foreignkey(db_field, request, **kwargs)


class IdentityProviderAdmin(StaffOnly, RowAdmin[IdentityProvider]):
    """Deleting one would leave identities that mean nothing, so it is switched off instead."""

    can_delete = False
    form = ProviderForm
    inlines = (RulesInline,)
    list_display = ("name", "slug", "issuer", "is_active", "people")
    search_fields = ("name", "slug", "issuer")
    fields = (
        "name", "slug", "issuer", "client_id", "new_secret", "is_active", "scopes", "domains", "default_team",
        "default_role", "groups_claim", "redirect_uri",
    )  # fmt: skip

    def get_readonly_fields(
        self, request: HttpRequest, obj: IdentityProvider | None = None
    ) -> tuple[str, ...]:
        """Half of each identity does not change."""
        return ("slug", "issuer", "redirect_uri") if obj else ("redirect_uri",)

    def formfield_for_foreignkey(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """Shared teams alone take everybody in."""
        if db_field.name == "default_team":
            kwargs["queryset"] = Team.objects.filter(is_personal=False).order_by("name")
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    def save_model(self, request: HttpRequest, obj: IdentityProvider, form: Any, change: bool) -> None:
        """With the secret encrypted."""
        if form.cleaned_data.get("new_secret"):
            obj.secret = encrypt(form.cleaned_data["new_secret"])
        super().save_model(request, obj, form, change)

    @admin.display(description="redirect URI (enter it at the provider)")
    def redirect_uri(self, row: IdentityProvider) -> str:
        return absolute(f"/accounts/oidc/{row.slug or '<slug>'}/login/callback/")

    @admin.display(description="people")
    def people(self, row: IdentityProvider) -> int:
        return int(SocialAccount.objects.filter(provider=row.slug).count())
