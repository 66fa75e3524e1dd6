"""What was held and booked, for staff to look up. Read-only, and quick on a long ledger."""

from typing import Any, get_args

from django.contrib import admin
from django.db.models import OuterRef, Q, QuerySet, Subquery
from django.http import HttpRequest

from app.accounts.models import Team
from app.billing.models import LedgerEntry, Reservation
from app.billing.types import CallKind
from app.common.admin_site import ReadOnly, RowAdmin, exact, filter_of, uuid_of

_ENTRY_KINDS = ("charge", "adjust", "refund", "grant", "write_off")
_STATES = ("held", "settled", "released", "expired")


# A word for this page only; in the model it would be a migration.
LedgerEntry._meta.verbose_name_plural = "ledger entries"  # noqa: SLF001


class TeamFilter(admin.SimpleListFilter):
    """One team's rows. Rows name teams by plain ids, and outlive them."""

    title, parameter_name = "team", "team"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(str(pk), name) for pk, name in Team.objects.order_by("name").values_list("id", "name")[:500]]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        chosen = uuid_of(self.value())
        return queryset.filter(team_id=chosen) if chosen else queryset


class _Booked(ReadOnly):
    """Rows with a payer, a price and a cost."""

    show_full_result_count = False
    list_per_page = 50
    search_fields: Any = ("id",)
    search_ids: tuple[str, ...] = ()
    search_words: tuple[str, ...] = ()

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """A whole id or a whole word, as the indexes have them; Django's own search would read every row."""
        term = search_term.strip()
        names, value = (self.search_ids, uuid_of(term)) if uuid_of(term) else (self.search_words, term)
        found = Q.create([(name, value) for name in names], connector=Q.OR)
        return (queryset.filter(found) if term else queryset), False

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """With the team's name, where there still is one."""
        name = Team.objects.filter(pk=OuterRef("team_id")).values("name")
        rows: QuerySet[Any] = super().get_queryset(request)  # type: ignore[misc]
        named: QuerySet[Any] = rows.annotate(team_name=Subquery(name))
        return named

    @admin.display(description="team", ordering="team_name")
    def team(self, row: Any) -> str:
        return row.team_name or str(row.team_id or "the installation")

    @admin.display(description="price", ordering="price")
    def price_exact(self, row: Any) -> str:
        return exact(row.price, row.currency)

    @admin.display(description="cost", ordering="cost")
    def cost_exact(self, row: Any) -> str:
        return exact(row.cost, row.currency)


class ReservationAdmin(_Booked, RowAdmin[Reservation]):
    """Holds, open and ended."""

    list_display = (
        "created_at", "state", "held_exact", "price_exact", "team", "kind", "price_key", "estimated", "overshoot",
        "late", "account_id",
    )  # fmt: skip
    list_filter = (
        ("created_at", admin.DateFieldListFilter),
        filter_of("state", _STATES),
        filter_of("kind", get_args(CallKind)),
        "estimated",
        "overshoot",
        TeamFilter,
    )
    search_ids, search_words = ("id", "account_id", "key_id", "turn_id"), ("request_id", "price_key")
    search_help_text = "An id of a reservation, account, key or turn; a request id or price key."
    ordering = ("-id",)
    fields = (
        "id", "state", "kind", "team", "account_id", "key_id", "deployment_id", "turn_id", "request_id", "price_key",
        "held_input_tokens", "held_output_tokens", "asked_output_tokens", "held_exact", "input_tokens",
        "output_tokens", "price_exact", "cost_exact", "created_at", "effective_at", "heartbeat_at", "expires_at",
        "ended_at", "settled_at", "settled_by", "estimated", "price_missing", "overshoot", "late", "recreated",
    )  # fmt: skip
    readonly_fields = fields

    @admin.display(description="held", ordering="held_price")
    def held_exact(self, row: Reservation) -> str:
        return exact(row.held_price, row.currency)


class LedgerEntryAdmin(_Booked, RowAdmin[LedgerEntry]):
    """What was booked. The database itself refuses to change a row."""

    date_hierarchy = "effective_at"
    list_display = (
        "effective_at", "price_exact", "team", "model", "input_tokens", "output_tokens", "estimated", "call_kind",
        "kind", "cost_exact", "account_id",
    )  # fmt: skip
    list_filter = (
        ("effective_at", admin.DateFieldListFilter),
        filter_of("call_kind", get_args(CallKind)),
        filter_of("kind", _ENTRY_KINDS),
        "estimated",
        "price_missing",
        "overshoot",
        TeamFilter,
    )
    search_ids, search_words = ("id", "reservation_id", "account_id", "key_id"), ("price_key", "model")
    search_help_text = "An id of an entry, reservation, account or key; a price key or model."
    ordering = ("-id",)
    fields = (
        "id", "kind", "call_kind", "dedupe_key", "effective_at", "recorded_at", "team", "account_id", "key_id",
        "deployment_id", "reservation", "model", "price_key", "price_version", "cost_version", "input_tokens",
        "output_tokens", "price_exact", "cost_exact", "estimated", "price_missing", "overshoot", "late", "recreated",
        "supersedes", "actor", "reason",
    )  # fmt: skip
    readonly_fields = fields
