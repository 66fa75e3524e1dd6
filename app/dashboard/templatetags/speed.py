"""Times in the dashboard's templates."""

from django import template

register = template.Library()

_STAGES = {
    "auth": "Signing in",
    "precount": "Counting",
    "check": "Checking the input",
    "reserve": "Reserving the price",
    "gate_wait": "Waiting in our line",
    "embed": "Embedding the question",
    "search": "Searching",
    "stitch": "Building the prompt",
    "quote": "Quoting",
    "redact": "Redacting",
    "connect": "Connecting",
    "load": "Loading the model",
    "server_queue": "The server's queue",
    "prefill": "Reading the prompt",
    "first_token": "First token",
    "decode": "Writing",
    "retry": "Trying again",
    "check_output": "Checking the output",
    "settle": "Booking",
    "other": "Everything else",
}


@register.filter
def stage(name: str) -> str:
    """A stage of a turn in words."""
    return _STAGES.get(name, name)


@register.filter
def ms(value: float | str | None) -> str:
    """Milliseconds as people say them; unknown, for which a template may say an empty string, is a dash."""
    if value is None or isinstance(value, str):
        return "–"
    if value < 1:
        return "<1 ms" if value > 0 else "0 ms"
    if value < 1000:
        return f"{value:.0f} ms"
    if value < 60_000:
        return f"{value / 1000:.2f} s" if value < 10_000 else f"{value / 1000:.1f} s"
    return f"{value / 60_000:.1f} min"


@register.filter
def speed(value: float | str | None) -> str:
    """Tokens per second."""
    if value is None or isinstance(value, str):
        return "–"
    return f"{value:.1f}" if value < 100 else f"{value:.0f}"


@register.simple_tag
def portion(part: int, whole: int) -> str:
    """A count in percent of another."""
    if not whole or not part:
        return "none"
    share = 100 * part / whole
    return "<1 %" if share < 1 else f"{share:.0f} %"
