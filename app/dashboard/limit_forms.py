"""The forms of the page of limits: what was typed, read; and each mistake with what to do."""

from decimal import Decimal
from typing import Any, get_args
from uuid import UUID

from django import forms

from app.billing.types import Period, Unit

UNITS = get_args(Unit)
PERIODS = get_args(Period)
_LARGEST = Decimal(10**12)
_NUMBER = "Write a number such as 20 or 0.50, with a point and no currency."


def _amount(*, required: bool = True) -> forms.DecimalField:
    return forms.DecimalField(
        min_value=0,
        max_value=_LARGEST,
        decimal_places=8,
        max_digits=20,
        required=required,
        error_messages={
            "required": "Write how much.",
            "invalid": _NUMBER,
            "min_value": "Write 0 or more; 0 means nothing.",
            "max_value": "That is beyond all counting; write a smaller number.",
            "max_decimal_places": "At most eight decimals are counted; write fewer.",
        },
    )


class AskForm(forms.Form):
    """Asking for more."""

    limit_id = forms.UUIDField()
    team = forms.UUIDField()
    amount = _amount(required=False)
    note = forms.CharField(
        max_length=500,
        required=False,
        error_messages={"max_length": "At most 500 characters; shorten the note."},
    )


class DecideForm(forms.Form):
    """Granting or declining."""

    grant = forms.ChoiceField(choices=[("yes", "yes"), ("no", "no")])
    amount = _amount(required=False)
    answer = forms.CharField(
        max_length=500,
        required=False,
        error_messages={"max_length": "At most 500 characters; shorten the word."},
    )


class BudgetForm(forms.Form):
    """Setting a limit of a team or of a person in it."""

    team = forms.UUIDField()
    account = forms.CharField(required=False)
    """`team`: the pool; empty: every person; else an account."""
    unit = forms.ChoiceField(
        choices=[(u, u) for u in UNITS],
        error_messages={"required": "Choose what is counted.", "invalid_choice": "Choose what is counted."},
    )
    period = forms.ChoiceField(
        choices=[(p, p) for p in PERIODS],
        error_messages={"required": "Choose a period.", "invalid_choice": "Choose a period."},
    )
    limit = _amount()
    soft = forms.BooleanField(required=False)

    def clean(self) -> dict[str, Any]:
        """`account_id` of the person who was chosen."""
        values: dict[str, Any] = super().clean() or {}
        account = values.get("account") or ""
        try:
            values["account_id"] = None if account in {"", "team"} else UUID(account)
        except ValueError:
            self.add_error("account", "Choose a person of the list.")
        return values


class ChangeForm(forms.Form):
    """Another amount for a limit that is there."""

    limit = _amount()


class PauseForm(forms.Form):
    """The switch of all spending."""

    paused = forms.ChoiceField(choices=[("yes", "yes"), ("no", "no")])
    reason = forms.CharField(
        max_length=400,
        required=False,
        error_messages={"max_length": "At most 400 characters; shorten the reason."},
    )


def first_problem(form: forms.Form) -> tuple[str, str]:
    """(field, sentence) of the first mistake; the field is empty where it belongs to none."""
    for field, errors in form.errors.items():
        sentence = str(errors[0])
        known = field in {"limit", "amount", "note", "answer", "reason", "unit", "period"}
        return (
            (field, sentence) if known else ("", f"This form was incomplete ({field}). Open the page again.")
        )
    return "", ""


def values_of(form: forms.Form) -> dict[str, Any]:
    """What was read."""
    return dict(form.cleaned_data)
