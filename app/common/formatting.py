"""Money, counts and shares as a reader of the active language wants them. Exact Decimals in, text out."""

from decimal import ROUND_HALF_EVEN, Decimal

from django.utils.translation import get_language

THIN = "\u202f"
_SYMBOLS = {"EUR": "€", "USD": "$", "GBP": "£", "JPY": "¥"}


def decimals_for(amount: Decimal) -> int:
    """Decimals that matter beside a sum of this size: 2 from 100 up, 4 from 1 up, else 6."""
    size = abs(amount)
    return 2 if size >= 100 else 4 if size >= 1 else 6


def money(amount: Decimal | None, currency: str, decimals: int = 2) -> str:
    """`€1 234.50` with thin separators, `1 234,50 €` in German; one too small for its decimals is never nothing."""
    if amount is None:
        return "unknown"
    step = Decimal(1).scaleb(-decimals)
    rounded = abs(amount).quantize(step, rounding=ROUND_HALF_EVEN)
    sign = "−" if amount < 0 else ""
    if amount and not rounded:
        sign, rounded = f"{sign}<", step
    return sign + _priced(f"{rounded:,f}".replace(",", THIN), _SYMBOLS.get(currency, f"{currency} "))


def _priced(number: str, symbol: str) -> str:
    """Symbol and number in the order of the language. Pages are built in their reader's, all else in English."""
    if not _german():
        return symbol + number
    return f"{number.replace('.', ',')}\u00a0{symbol.strip()}"


def _german() -> bool:
    return (get_language() or "").startswith("de")


def figure(amount: Decimal | None, currency: str) -> str:
    """One amount on its own: 2 decimals from a cent up, below that two significant digits."""
    if amount is None or not amount or abs(amount) >= Decimal("0.0995"):
        return money(amount, currency)
    return money(amount, currency, min(15, 1 - amount.adjusted()))


def count(number: int) -> str:
    """`12 345` with thin separators."""
    return f"{number:,}".replace(",", THIN)


def share(part: Decimal, whole: Decimal) -> str:
    """`12 %`; a part that is there but below one percent says so, and so does one that is not quite all."""
    if not whole:
        return "0 %"
    percent = part / whole * 100
    if 0 < percent < 1:
        return "<1 %"
    if 99 < percent < 100:
        return ">99 %"
    return f"{percent.quantize(Decimal(1), rounding=ROUND_HALF_EVEN)} %"


def size(count_of_bytes: int) -> str:
    """`12.3 MB`, in thousands as disks are sold; whole bytes below a thousand."""
    amount, unit = Decimal(count_of_bytes), "bytes"
    for larger in ("kB", "MB", "GB", "TB", "PB"):
        if abs(amount) < 1000:
            break
        amount, unit = amount / 1000, larger
    if unit == "bytes":
        return f"{count_of_bytes} bytes"
    return f"{amount:.1f} {unit}".replace(".", "," if _german() else ".")
