"""Links that are mailed where mail exists, and else shown to whoever may hand them on."""

from allauth.account.forms import default_token_generator
from allauth.account.utils import user_pk_to_url_str
from django.conf import settings
from django.urls import reverse

from app.accounts.models import User


def password_link(user: User) -> str:
    """Where a person chooses a new password: works once, for three days, and not after a change of the password."""
    key = default_token_generator.make_token(user)
    return absolute(
        reverse("account_reset_password_from_key", kwargs={"uidb36": user_pk_to_url_str(user), "key": key})
    )


def absolute(path: str) -> str:
    """A path of this installation as people outside reach it."""
    return f"{settings.PUBLIC_URL}{path}"
