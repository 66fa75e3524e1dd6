"""Tables of billing; nothing outside `app.billing` may import them."""

from app.billing.models.asking import BudgetAlert, LimitRequest, OvershootAlert, Pause, Telling
from app.billing.models.budgets import Budget, BudgetWindow
from app.billing.models.credit import CreditMovement
from app.billing.models.haste import RateLimit
from app.billing.models.ledger import LedgerEntry, LedgerLine
from app.billing.models.outbox import Delivery, Webhook
from app.billing.models.prices import PriceComponent, PriceVersion
from app.billing.models.rates import ExchangeRate, TeamRate
from app.billing.models.reservations import LineState, Reservation, ReservationLine, UsageAttempt
from app.billing.models.rollups import BusyHour, Grain, Rollup, RollupBuild, RollupPending, RollupZone
from app.billing.models.statements import Statement, StatementEntry, StatementLine

__all__ = [
    "Budget",
    "BudgetAlert",
    "BudgetWindow",
    "BusyHour",
    "CreditMovement",
    "Delivery",
    "ExchangeRate",
    "Grain",
    "LedgerEntry",
    "LedgerLine",
    "LimitRequest",
    "LineState",
    "OvershootAlert",
    "Pause",
    "PriceComponent",
    "PriceVersion",
    "RateLimit",
    "Reservation",
    "ReservationLine",
    "Rollup",
    "RollupBuild",
    "RollupPending",
    "RollupZone",
    "Statement",
    "StatementEntry",
    "StatementLine",
    "TeamRate",
    "Telling",
    "UsageAttempt",
    "Webhook",
]
