"""Forms of signing in and signing up."""

from allauth.account.forms import LoginForm, SignupForm
from django import forms
from django.utils.translation import gettext_lazy


class SignInForm(LoginForm):
    """allauth's form; the address is sent as `username`, the name that password managers know."""

    def add_prefix(self, field_name: str) -> str:
        """`login` is `username` on the page."""
        return str(super().add_prefix("username" if field_name == "login" else field_name))


class SignUpForm(SignupForm):
    """Address, name and password; once, since it can be shown."""

    name = forms.CharField(
        max_length=200,
        label=gettext_lazy("Name"),
        help_text=gettext_lazy("As your team will see it."),
        widget=forms.TextInput(attrs={"autocomplete": "name"}),
    )
    field_order = ("email", "name", "password1")
