from allauth.account.views import login
from django.urls import path
from django.views.generic import RedirectView

from app.accounts.language import LanguageView
from app.accounts.oidc import come_back, sign_in
from app.accounts.team_pages import (
    ImportView,
    InvitationEndView,
    InvitationView,
    MembersView,
    MemberView,
)
from app.accounts.views import BreakGlassView, DeviceEndView, HomeView, IdentityEndView, SignOutView

app_name = "accounts"
_HOME = RedirectView.as_view(pattern_name="accounts:home")
urlpatterns = [
    path("", HomeView.as_view(), name="home"),
    path("login/", login, name="login"),
    path("logout/", SignOutView.as_view(), name="logout"),
    path("devices/<int:device_id>/end/", DeviceEndView.as_view(), name="device-end"),
    path("language/", LanguageView.as_view(), name="language"),
    path("devices/end/", DeviceEndView.as_view(), name="devices-end"),
    path("teams/<uuid:team_id>/members/", MembersView.as_view(), name="members"),
    path("teams/<uuid:team_id>/members/import/", ImportView.as_view(), name="members-import"),
    path("teams/<uuid:team_id>/members/<uuid:user_id>/", MemberView.as_view(), name="member"),
    path(
        "teams/<uuid:team_id>/invitations/<uuid:invitation_id>/end/",
        InvitationEndView.as_view(),
        name="invitation-end",
    ),
    path("invitation/<str:token>/", InvitationView.as_view(), name="invitation"),
    path("oidc/<slug:provider_id>/login/", sign_in, name="provider"),
    path("oidc/<slug:provider_id>/login/callback/", come_back, name="provider-back"),
    path("providers/<int:identity_id>/end/", IdentityEndView.as_view(), name="identity-end"),
    path("break-glass/", BreakGlassView.as_view(), name="break-glass"),
    path("3rdparty/", _HOME),
    # allauth's lists of factors and sessions, which the account page shows all on one.
    path("2fa/", _HOME),
    path("2fa/webauthn/", _HOME),
    path("sessions/", _HOME),
]
