"""Signing in with e-mail and password. Signing out is Django's own view."""

from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import LoginView
from django.utils.decorators import method_decorator
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters


class SignInForm(AuthenticationForm):
    """Django's form with words that do not tell a stranger whether an account exists."""

    error_messages = {
        "invalid_login": (
            "This e-mail and password do not belong together. Check both; capital letters count in the password. "
            "An administrator can set a new password."
        ),
        "inactive": "This account is suspended. An administrator can lift that.",
    }

    def clean_username(self) -> str:
        """E-mail addresses are kept in lower case, so that a phone's capital letter locks nobody out."""
        return str(self.cleaned_data["username"]).strip().lower()


@method_decorator([never_cache, sensitive_post_parameters("password")], name="dispatch")
class SignInView(LoginView):
    """GET shows the form, POST signs in and goes to `next` or the chat."""

    template_name = "accounts/login.html"
    authentication_form = SignInForm
