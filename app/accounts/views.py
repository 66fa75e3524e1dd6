"""Signing in with e-mail and password. Signing out is Django's own view."""

from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import LoginView
from django.http import HttpResponse
from django.utils.decorators import method_decorator
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters

from app.accounts.selectors import account_of_email
from app.audit.services import Verb, audit


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

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        """Signed in, and written down."""
        answer = super().form_valid(form)
        audit(Verb.SIGN_IN, object_kind="person", object_id=form.get_user().account_id)
        return answer

    def form_invalid(self, form: AuthenticationForm) -> HttpResponse:
        """Refused, and written down with the account that was tried where there is one; never what was typed."""
        tried = account_of_email(str(form.cleaned_data.get("username", "")))
        audit(Verb.SIGN_IN, object_kind="person", object_id=tried or "", refused=True)
        return super().form_invalid(form)
