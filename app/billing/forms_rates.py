"""Forms for what changes a price on its way, for prepaid credit and for servers paid by the hour."""

from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from django import forms
from django.conf import settings

from app.accounts.models import Team
from app.billing.credit import credit_correct, credit_grant
from app.billing.forms import AskingForm, M, moment_field
from app.billing.models import CreditMovement, ExchangeRate, TeamRate
from app.billing.pricing import proposal
from app.billing.rates import exchange_rate_set, provisioned_set, team_rate_set
from app.billing.types import Price
from app.catalog.models import Deployment
from app.common.errors import AppError


def _team(help_text: str) -> Any:
    return forms.ModelChoiceField(Team.objects.order_by("name"), help_text=help_text)


class _Worded(AskingForm[M]):
    """The fields check what was typed, billing the rest in words; the database's own constraints would say less."""

    def _get_validation_exclusions(self) -> set[str]:
        return {field.name for field in self._meta.model._meta.fields}  # noqa: SLF001 - as Django names it


class TeamRateForm(_Worded[TeamRate]):
    """A factor for a team from now on."""

    team = _team("Whose prices are multiplied.")
    effective_from = moment_field("In UTC; empty: now. Calls already made keep what they had.")

    class Meta:
        model = TeamRate
        fields = ("price_key", "factor")
        help_texts = {
            "price_key": "Empty: all prices. A fixed price of the team goes before a factor.",
            "factor": "1.2 adds 20 %, 0.9 takes 10 % off.",
        }

    def write(self, values: dict[str, Any]) -> TeamRate:
        return team_rate_set(
            team_id=values["team"].pk,
            price_key=values["price_key"],
            factor=values["factor"],
            effective_from=values["effective_from"],
            approved_by=self.set_by,
        )


class ExchangeRateForm(_Worded[ExchangeRate]):
    """A rate from now on."""

    effective_from = moment_field("In UTC; empty: now. It holds until the next one.")

    class Meta:
        model = ExchangeRate
        fields = ("currency", "rate", "source")
        help_texts = {
            "currency": "Its code, such as USD.",
            "rate": f"What one unit of it is worth in {settings.CURRENCY}.",
            "source": "Where it was read, such as ECB.",
        }

    def write(self, values: dict[str, Any]) -> ExchangeRate:
        return exchange_rate_set(**{**values, "currency": values["currency"].upper()}, entered_by=self.set_by)


class CreditForm(_Worded[CreditMovement]):
    """A grant, or the correction of one."""

    team = _team("Who is given credit; from its first grant on a team can spend no more than what is left.")
    corrects = forms.IntegerField(
        required=False, help_text="The number of a grant to correct, by the amount above; empty: a new grant."
    )
    expires_at = moment_field("In UTC: what is unspent then lapses. Empty: never.")

    class Meta:
        model = CreditMovement
        fields = ("amount", "source", "reason")
        help_texts = {
            "amount": f"In {settings.CURRENCY}. A correction may take back: -5.",
            "source": "Where the money comes from, such as an invoice's number.",
            "reason": "Of a correction.",
        }

    def write(self, values: dict[str, Any]) -> int:
        team: UUID = values["team"].pk
        amount: Decimal = values["amount"]
        grant: int | None = values["corrects"]
        ends: datetime | None = values["expires_at"]
        if grant is None:
            return credit_grant(
                team_id=team, amount=amount, source=values["source"], expires_at=ends, granted_by=self.set_by
            )
        if ends is not None:
            raise ValueError("A correction keeps the grant's end; leave the end empty.")
        return credit_correct(
            team_id=team, grant_id=grant, amount=amount, reason=values["reason"], corrected_by=self.set_by
        )


class HourlyForm(forms.Form):
    """What a deployment costs by the hour."""

    deployment = forms.ModelChoiceField(Deployment.objects.select_related("backend").order_by("public_name"))
    per_hour = forms.DecimalField(min_value=0, max_digits=18, decimal_places=9)
    currency = forms.CharField(max_length=3, initial=settings.CURRENCY)

    def write(self, set_by: str) -> Price | None:
        """Errors stand on the form, and None is given back."""
        values = self.cleaned_data
        try:
            return provisioned_set(
                deployment_id=values["deployment"].pk,
                per_hour=values["per_hour"],
                currency=values["currency"].upper(),
                approved_by=set_by,
            )
        except AppError as exc:
            self.add_error(None, exc.message)
        return None


class ProposalForm(forms.Form):
    """From an hour's cost to a price per million tokens."""

    per_hour = forms.DecimalField(min_value=0, label=f"Cost of an hour, {settings.CURRENCY}")
    tokens_per_second = forms.DecimalField(
        help_text="Input and output together, at the load beyond which more callers only wait: measure it."
    )
    utilisation = forms.DecimalField(
        initial="0.5", help_text="The part of the time it will be that busy, 0 to 1."
    )
    price_key = forms.CharField(max_length=200)

    proposed: Decimal | None = None

    def clean(self) -> dict[str, Any]:
        """With the proposal, when it can be made."""
        values: dict[str, Any] = super().clean() or self.cleaned_data
        if not self.errors:
            try:
                self.proposed = proposal(
                    **{name: values[name] for name in ("per_hour", "tokens_per_second", "utilisation")}
                )
            except ValueError as exc:
                raise forms.ValidationError(str(exc)) from exc
        return values
