"""Servers and their models for staff. A server's key goes in and never comes out again."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.http import urlencode
from django.utils.safestring import SafeString

from app.accounts.models import Level
from app.catalog.models import CAPABILITIES, Backend, Deployment, ModelRoute, TokenFit
from app.catalog.probing import address_clean, on_premises
from app.catalog.services import backend_save, clearance_lower, kind_leaves, route_problem
from app.catalog.tokenizers import tokenizer
from app.common.admin_site import RowAdmin, RowForm, StaffOnly
from app.common.errors import InvalidInput
from inference_client.adapters.kind import Kind
from inference_client.adapters.kinds import KINDS, kind_of
from inference_client.learned import learned_read
from inference_client.tokens import TokenizerFileError

_WHERE = (
    ("", "as its address and kind say"),
    ("yes", "leaves the premises"),
    ("no", "stays on the premises"),
)


def _kind_label(row: Kind) -> str:
    """What is proved by recordings only says so."""
    return f"{row.title} ({row.name}){'' if row.grade == 'supported' else ' – experimental'}"


class BackendForm(RowForm[Backend]):
    """A server. Fields that are no columns as they are: the address, the key, and where it stands."""

    kind = forms.ChoiceField(
        choices=[(row.name, _kind_label(row)) for row in KINDS.values()],
        initial="openai-compatible",
    )
    address = forms.CharField(
        max_length=500, help_text="Up to and including /v1, such as http://host:8000/v1.", label="Address"
    )
    key = forms.CharField(
        required=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
        help_text="Stored encrypted and never shown. Left empty, the present one stays.",
    )
    forget_key = forms.BooleanField(required=False, help_text="The server wants none.")
    where = forms.ChoiceField(choices=_WHERE, required=False, label="Content sent to it")

    class Meta:
        model = Backend
        fields = ("name", "kind", "region", "options", "enabled")
        help_texts = {
            "enabled": "The server that the settings name is switched on at every start; to hide its models, switch "
            "those off."
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.instance.base_url:
            self.initial["address"] = self.instance.base_url
            self.initial["where"] = "yes" if self.instance.leaves_premises else "no"
            self.initial["kind"] = _kind_name(self.instance.kind)
            # Starts find servers by their names.
            self.fields["name"].disabled = True

    def clean_address(self) -> str:
        """Names without a dot are fine here: a container's, or a machine's on the own network."""
        try:
            return address_clean(self.cleaned_data["address"])
        except InvalidInput as exc:
            raise forms.ValidationError(exc.message) from exc

    def clean(self) -> dict[str, Any]:
        """What was typed, into the row."""
        values = super().clean() or self.cleaned_data
        if not self.errors:
            row, where = self.instance, values["where"]
            row.base_url = values["address"]
            row.leaves_premises = (
                where == "yes" if where else kind_leaves(values["kind"]) or not on_premises(row.base_url)
            )
            if values["key"] or values["forget_key"]:
                row.set_api_key("" if values["forget_key"] else values["key"])
        return values


@admin.register(Backend)
class BackendAdmin(StaffOnly, RowAdmin[Backend]):
    """Servers are switched off, not deleted: past turns and the ledger name their models."""

    can_delete = False
    form = BackendForm
    fields = (
        "name",
        "kind",
        "address",
        "key",
        "forget_key",
        "where",
        "region",
        "options",
        "enabled",
        "has_key",
    )
    readonly_fields = ("has_key",)
    list_display = ("name", "kind", "base_url", "region", "leaves_premises", "has_key", "enabled")
    list_filter = ("enabled", "leaves_premises")
    search_fields = ("name", "base_url")

    @admin.display(boolean=True, description="key stored")
    def has_key(self, row: Backend) -> bool:
        """Whether there is one; that is all that is ever shown of it."""
        return bool(row.secret)

    def save_model(self, request: HttpRequest, obj: Backend, form: Any, change: bool) -> None:
        """What begins to leave the premises sees nothing private until somebody says so again."""
        before = Backend.objects.filter(pk=obj.pk).first()
        backend_save(obj, before=before)
        if (
            before
            and not before.leaves_premises
            and obj.leaves_premises
            and (count := clearance_lower(backend=obj))
        ):
            self.message_user(
                request,
                f"{obj} leaves the premises now, so models that were cleared for private content see internal content "
                f"at most: {count}. Raise them again where you mean it.",
                messages.WARNING,
            )


class DeploymentForm(RowForm[Deployment]):
    """A model of a server."""

    capabilities = forms.MultipleChoiceField(
        choices=[(name, name) for name in CAPABILITIES],
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text="Calls that need another one are refused, naming the models that can.",
    )

    class Meta:
        model = Deployment
        fields = "__all__"
        help_texts = {
            "public_name": "What people choose. Models of one name on several servers stand in for each other.",
            "upstream_model": "What the server calls it.",
            "price_key": "What its price is found under.",
            "context_window": "Tokens of input and output together; empty is unknown, and prompts are kept short.",
            "clearance": "The highest privacy level of content it may see.",
            "abort_stops_billing": "Whether the server stops, and stops charging, when a call is broken off.",
            "slots": "Calls at once; more wait in line.",
            "priority": "The highest is tried first, and the first of all is what a new conversation uses.",
            "parameters_b": "Billions of parameters, for routes that want the smallest model that will do.",
            "tokenizer": "Counts before the call where the server cannot: o200k_base, cl100k_base, or file: and the "
            "name of the model's own tokenizer.json in TOKENIZERS_DIR. After it the server's own count is booked.",
        }

    def clean_tokenizer(self) -> str:
        """One that can count."""
        name = str(self.cleaned_data["tokenizer"])
        try:
            tokenizer(name)
            return name
        except (LookupError, TokenizerFileError) as exc:
            raise forms.ValidationError(str(exc)) from exc


@admin.register(Deployment)
class DeploymentAdmin(StaffOnly, RowAdmin[Deployment]):
    """Models are switched off, not deleted: past turns and the ledger name them."""

    can_delete = False
    form = DeploymentForm
    list_display = (
        "public_name", "backend", "purpose", "prices", "context_window", "clearance", "slots", "priority", "enabled",
        "counted",
    )  # fmt: skip
    list_filter = ("purpose", "enabled", "clearance", "backend")
    list_select_related = ("backend", "token_fit")
    search_fields = ("public_name", "upstream_model", "price_key")
    readonly_fields = ("prices", "counted")
    ordering = ("-priority", "id")

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        """A new model sees internal content at most until somebody says otherwise."""
        return {"clearance": Level.INTERNAL.value} | super().get_changeform_initial_data(request)

    @admin.display(description="input counted")
    def counted(self, row: Deployment) -> str:
        """How well the count before the call is known, and whether the server was seen to cut prompts."""
        fit: TokenFit | None = getattr(row, "token_fit", None)
        if fit is None:
            return "–"
        known = learned_read(fit.learned)
        words = f"±{known.plain_pct:g} % after {known.n} calls" if known.n else "not yet learned"
        if fit.short_at is None:
            return words
        return f"{words}; ⚠ read {fit.short_read} of {fit.short_sent} tokens sent on {fit.short_at:%d %b %H:%M} UTC"

    @admin.display(description="price")
    def prices(self, row: Deployment) -> SafeString | str:
        """The way to its price: billing owns that, and is above the catalog."""
        if not row.price_key:
            return "–"
        address = reverse("admin:billing_priceversion_changelist") + "?" + urlencode({"q": row.price_key})
        return format_html('<a href="{}">{}</a>', address, row.price_key)


class ModelRouteForm(RowForm[ModelRoute]):
    """A name and who answers to it; the models one a line."""

    model_names = forms.CharField(
        label="Models",
        required=False,
        widget=forms.Textarea(attrs={"rows": 5}),
        help_text="Public model names, one a line, the first choice first. Empty for a retired model.",
    )

    class Meta:
        model = ModelRoute
        fields = ("name", "model_names", "successor", "allow_dearer", "smallest", "allow_unpriced")
        help_texts = {
            "name": "What callers send: an alias such as auto or fast, or a model's own name to give it fallbacks.",
            "successor": "The name is retired, and this model or alias answers in its place, saying so.",
            "allow_dearer": "A later model may cost more than the first.",
            "smallest": "By size instead of by order: the smallest model that can do it.",
            "allow_unpriced": "A model without a price may stand in, for callers without a money budget.",
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.initial["model_names"] = "\n".join(self.instance.model_names)

    def clean_model_names(self) -> list[str]:
        """Lines as a list."""
        return [line.strip() for line in self.cleaned_data["model_names"].splitlines() if line.strip()]

    def clean(self) -> dict[str, Any]:
        """What makes sense together."""
        values = super().clean() or self.cleaned_data
        if not self.errors and (
            problem := route_problem(values["name"], values["model_names"], values["successor"])
        ):
            self.add_error(*problem)
        return values


@admin.register(ModelRoute)
class ModelRouteAdmin(StaffOnly, RowAdmin[ModelRoute]):
    """Aliases, fallbacks and successors; `manage.py route_test` tries them out."""

    form = ModelRouteForm
    list_display = ("name", "served_by", "allow_dearer", "smallest", "allow_unpriced")
    search_fields = ("name",)
    ordering = ("name",)

    @admin.display(description="served by")
    def served_by(self, row: ModelRoute) -> str:
        """The models in order, or the successor."""
        return f"retired: {row.successor}" if row.successor else ", ".join(row.model_names)


def _kind_name(name: str) -> str:
    try:
        return kind_of(name).name
    except LookupError:
        return name
