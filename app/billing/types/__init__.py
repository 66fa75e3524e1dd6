"""Values that cross billing's border. Plain ints for tokens, Decimal for money, UUIDs for owners; never a float.

Billing knows no person, chat or model: a payer is a set of opaque ids, a price is found by its key.
"""

from app.billing.types.calls import (
    Attempt,
    Buckets,
    Entry,
    Held,
    Hold,
    Note,
    Payer,
    Settled,
    Settlement,
)
from app.billing.types.money import (
    EntryRow,
    LimitState,
    Line,
    Price,
    Rate,
    SpendFilter,
    SpendRow,
)
from app.billing.types.words import (
    INPUT_COMPONENTS,
    OUTPUT_COMPONENTS,
    OUTPUT_FLOOR,
    SAME_AS,
    STORED,
    CallKind,
    EndState,
    GroupBy,
    Outcome,
    Period,
    Scope,
    Side,
    Unit,
    UsageSource,
)

__all__ = [
    "INPUT_COMPONENTS",
    "OUTPUT_COMPONENTS",
    "OUTPUT_FLOOR",
    "SAME_AS",
    "STORED",
    "Attempt",
    "Buckets",
    "CallKind",
    "EndState",
    "Entry",
    "EntryRow",
    "GroupBy",
    "Held",
    "Hold",
    "LimitState",
    "Line",
    "Note",
    "Outcome",
    "Payer",
    "Period",
    "Price",
    "Rate",
    "Scope",
    "Settled",
    "Settlement",
    "Side",
    "SpendFilter",
    "SpendRow",
    "Unit",
    "UsageSource",
]
