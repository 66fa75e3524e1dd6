"""Accounts: sign-in, sign-up, second factors and the sessions of apps, mostly under django-allauth's own names."""

from app.settings import env

SIGNUP_OPEN = env.flag("SIGNUP_OPEN")
"""Whether strangers may make themselves an account; else people come by invitation or through a provider."""
INVITE_DAYS = env.number("INVITE_DAYS", 7)

AUTHENTICATION_BACKENDS = ["allauth.account.auth_backends.AuthenticationBackend"]
ACCOUNT_ADAPTER = "app.accounts.adapter.AccountAdapter"
ACCOUNT_FORMS = {
    "login": "app.accounts.forms.SignInForm",
    "signup": "app.accounts.forms.SignUpForm",
}
ACCOUNT_LOGIN_METHODS = {"email"}
ACCOUNT_SIGNUP_FIELDS = ["email*", "password1*"]
ACCOUNT_USER_MODEL_USERNAME_FIELD = None
ACCOUNT_SIGNUP_ENABLED = SIGNUP_OPEN
ACCOUNT_EMAIL_VERIFICATION = "mandatory"
ACCOUNT_EMAIL_UNKNOWN_ACCOUNTS = False
ACCOUNT_EMAIL_SUBJECT_PREFIX = "Tessera: "
ACCOUNT_CHANGE_EMAIL = True
ACCOUNT_SESSION_REMEMBER = True
ACCOUNT_REAUTHENTICATION_TIMEOUT = 900
ACCOUNT_REAUTHENTICATION_METHODS = ("password", "mfa")
ACCOUNT_RATE_LIMITS = {"login": "60/m/ip", "login_failed": "20/m/ip,5/5m/key"}
"""Against guessing: by address, and by account wherever it is tried from."""

ALLAUTH_TRUSTED_PROXY_COUNT = env.number("TRUSTED_PROXIES", 0)
"""How many proxies in front append to X-Forwarded-For. Left at 0 behind one, everybody shares one limit on guessing."""

CACHES = {"default": {"BACKEND": "app.common.soft_cache.SoftCache", "LOCATION": env.text("REDIS_URL")}}

MFA_ADAPTER = "app.accounts.adapter.SecondFactorAdapter"
MFA_SUPPORTED_TYPES = ["totp", "recovery_codes", "webauthn"]
MFA_PASSKEY_LOGIN_ENABLED = True
MFA_TOTP_ISSUER = "Tessera"
MFA_TOTP_TOLERANCE = 1
# Browsers hold passkeys for https and for localhost only; on the latter the scheme is plain.
MFA_WEBAUTHN_ALLOW_INSECURE_ORIGIN = not env.text("PUBLIC_URL").startswith("https://")

# Apps: an access token for ten minutes, and a refresh token that is good for one use.
HEADLESS_CLIENTS = ("app",)
HEADLESS_TOKEN_STRATEGY = "app.accounts.app_sessions.AppTokens"  # noqa: S105 - a class
HEADLESS_JWT_ALGORITHM = "HS256"
HEADLESS_JWT_ACCESS_TOKEN_EXPIRES_IN = 600
HEADLESS_JWT_REFRESH_TOKEN_EXPIRES_IN = 14 * 86400
HEADLESS_JWT_STATEFUL_VALIDATION_ENABLED = True

SSO_ONLY = env.flag("SSO_ONLY")
"""Whether people sign in through a provider only; staff keep one form for the day when none answers."""
SOCIALACCOUNT_ADAPTER = "app.accounts.provider_adapter.ProviderAdapter"
SOCIALACCOUNT_PROVIDERS = {
    "openid_connect": {"provider_class": "app.accounts.oidc.HouseProvider", "OAUTH_PKCE_ENABLED": True}
}
SOCIALACCOUNT_LOGIN_ON_GET = True
SOCIALACCOUNT_EMAIL_VERIFICATION = "none"
