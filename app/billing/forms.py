"""Forms of the administration for prices and limits. Billing itself is asked while a form is checked, so that its
refusal stands beside what was typed; the page runs in one transaction.
"""

from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeVar, get_args
from uuid import UUID

from django import forms
from django.conf import settings
from django.db.models import Model

from app.accounts.models import ApiKey, Team, User
from app.billing.budgets import budget_set
from app.billing.models import Budget, PriceVersion
from app.billing.naming import ids_of
from app.billing.prices import price_set
from app.billing.showing import rates_read
from app.billing.types import Period, Price, Rate, Scope, Unit
from app.common.admin_site import RowForm
from app.common.errors import AppError

M = TypeVar("M", bound=Model)

_RATES = ("input", "output", "cache_read", "cache_write", "cache_write_long", "reasoning")
"""Components with a field of their own, per million tokens."""


def _rate_field(help_text: str) -> forms.DecimalField:
    return forms.DecimalField(
        required=False, min_value=0, max_digits=18, decimal_places=9, help_text=help_text
    )


if TYPE_CHECKING:
    _KeyChoice = forms.ModelChoiceField[ApiKey]
else:
    _KeyChoice = forms.ModelChoiceField


class AskingForm(RowForm[M]):
    """A form that has billing write, as the last thing that is checked."""

    set_by: str
    """Opaque name of who fills it in."""
    written: Any = None
    """What billing gave back."""

    def _post_clean(self) -> None:
        super()._post_clean()  # type: ignore[misc]
        if self.errors:
            return
        try:
            self.written = self.write(self.cleaned_data)
        except AppError as exc:
            self.add_error(None, exc.message)
        except ValueError as exc:
            self.add_error(None, str(exc))

    def write(self, values: dict[str, Any]) -> Any:
        """Errors: AppError, ValueError, in words for a person."""
        raise NotImplementedError


def moment_field(help_text: str) -> forms.SplitDateTimeField:
    """An instant that may be left out."""
    return forms.SplitDateTimeField(
        required=False,
        widget=forms.SplitDateTimeWidget(date_attrs={"type": "date"}, time_attrs={"type": "time"}),
        help_text=help_text,
    )


class PriceForm(AskingForm[PriceVersion]):
    """A new version of a price."""

    team = forms.ModelChoiceField(
        Team.objects.order_by("name"),
        required=False,
        help_text="A price of this team alone; empty: everybody's.",
    )
    input = _rate_field("Per million tokens, like all below. Empty is unknown; free is 0.")
    output = _rate_field("Leave it empty for an embedding model.")
    cache_read = _rate_field("Input read from the server's cache; empty: as input.")
    cache_write = _rate_field("Input written to the cache; empty: as input.")
    cache_write_long = _rate_field("Written for an hour, where the server tells it apart; empty is unknown.")
    reasoning = _rate_field("Empty: as output.")
    request = _rate_field("A fee for each call, beside its tokens.")
    more = forms.CharField(
        required=False,
        widget=forms.Textarea(attrs={"rows": 4}),
        help_text="Other components and tiers by the whole prompt, one a line: “input 5 from 200001”, "
        "“input_audio 40”, “web_search 10 per 1000”.",
    )
    effective_from = moment_field("In UTC; empty: now. Calls already made keep the price they had.")

    class Meta:
        model = PriceVersion
        fields = ("price_key", "side", "mode", "currency")
        help_texts = {
            "price_key": "As the model names it, such as chat/llama3; for a team alone also * for everything.",
            "mode": "standard, or another way of being served, such as batch; each has a price of its own.",
            "currency": "User prices are in the installation's; a cost may be in another.",
            "side": "price: what the payer owes; cost: what the server's owner asks of us.",
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name, usual in (("mode", "standard"), ("currency", settings.CURRENCY)):
            self.fields[name].required = False
            self.fields[name].initial = usual

    def write(self, values: dict[str, Any]) -> Price:
        rates = [Rate(component=name, price=values[name]) for name in _RATES if values[name] is not None]
        if values["request"] is not None:
            rates.append(Rate(component="request", price=values["request"], per_units=1))
        return price_set(
            price_key=values["price_key"],
            rates=[*rates, *rates_read(values["more"])],
            side=values["side"],
            mode=values["mode"] or "standard",
            currency=values["currency"],
            team_id=values["team"].pk if values["team"] else None,
            effective_from=values["effective_from"],
            approved_by=self.set_by,
        )


class _KeyField(_KeyChoice):
    def label_from_instance(self, obj: Any) -> str:
        return f"{obj.prefix}… {obj.name} ({obj.team})"


def _words(closed: Any) -> list[tuple[str, str]]:
    return [(word, word) for word in get_args(closed)]


class BudgetForm(AskingForm[Budget]):
    """Another amount for a limit that is there, in force at once."""

    limit = forms.DecimalField(
        min_value=0,
        max_digits=28,
        decimal_places=15,
        help_text=f"Money in {settings.CURRENCY}, else whole tokens, requests, bytes or pages. 0 means nothing.",
    )

    class Meta:
        model = Budget
        fields: tuple[str, ...] = ("name", "limit", "hard")
        help_texts = {
            "name": "What a refusal calls it.",
            "hard": "Refuse a call that does not fit; otherwise it is only shown.",
        }

    def write(self, values: dict[str, Any]) -> UUID:
        row = Budget.objects.get(pk=self.instance.pk)
        same: dict[str, Any] = {"scope": row.scope, "unit": row.unit, "period": row.period} | ids_of(
            row.subject
        )
        return budget_set(
            **same,
            price_key=row.price_key,
            zone=row.zone,
            limit=values["limit"],
            name=values["name"],
            hard=values["hard"],
            alert_ratios=[Decimal(str(ratio)) for ratio in row.alert_ratios],
            set_by=self.set_by,
            ceiling=values["limit"],
        )


class BudgetAddForm(BudgetForm):
    """A new limit; the same subject, unit, model and period again changes the one that is there."""

    scope = forms.ChoiceField(choices=_words(Scope))
    team = forms.ModelChoiceField(
        Team.objects.order_by("name"),
        required=False,
        help_text="Scope team or allowance. Left empty: every team without a limit of its own.",
    )
    person = forms.ModelChoiceField(
        User.objects.order_by("email"),
        required=False,
        help_text="Scope person or allowance. Left empty: everybody without one of their own.",
    )
    key = _KeyField(
        ApiKey.objects.filter(revoked_at=None).select_related("team").order_by("prefix"),
        required=False,
        help_text="Scope key. Left empty: each key by itself, so whoever makes ten has ten times as much; what bounds "
        "them together is a limit of the person or the team.",
    )
    unit = forms.ChoiceField(choices=_words(Unit))
    period = forms.ChoiceField(choices=_words(Period), initial="month")
    price_key = forms.CharField(
        required=False, max_length=200, help_text="Counts only this model; empty: all."
    )
    zone = forms.CharField(
        max_length=60, initial=settings.INSTALLATION_ZONE, help_text="IANA name, such as Europe/Berlin."
    )

    def write(self, values: dict[str, Any]) -> UUID:
        return budget_set(
            scope=values["scope"],
            unit=values["unit"],
            period=values["period"],
            team_id=values["team"].pk if values["team"] else None,
            account_id=values["person"].account_id if values["person"] else None,
            key_id=values["key"].pk if values["key"] else None,
            price_key=values["price_key"],
            zone=values["zone"],
            limit=values["limit"],
            name=values["name"],
            hard=values["hard"],
            set_by=self.set_by,
            ceiling=values["limit"],
        )
