"""The stages of a turn split into what the gate and the servers measured of them. Pure; the sum stays what it was."""

from collections.abc import Mapping, Sequence

from inference_client.types import Timing

STAGES = (
    "auth",
    "precount",
    "check",
    "reserve",
    "gate_wait",
    "embed",
    "search",
    "stitch",
    "quote",
    "redact",
    "connect",
    "load",
    "server_queue",
    "prefill",
    "first_token",
    "decode",
    "retry",
    "check_output",
    "settle",
    "other",
)
"""In the order of a turn. `first_token` is what the server does not split into its queue and the reading of the prompt;
`retry` is what calls that failed and the pauses after them took."""
AFTER_FIRST_TOKEN = frozenset({"decode", "check_output", "settle", "other"})
TO_FIRST_TOKEN = tuple(name for name in STAGES if name not in AFTER_FIRST_TOKEN)


def stages_split(stages: Mapping[str, float], *, embed_s: float, calls: Sequence[Timing]) -> dict[str, float]:
    """`retrieve` becomes embed and search, `infer` its parts; all in seconds.

    What a part claims beyond the stage it lies in is not believed, so that the parts always add up.
    """
    split = dict(stages)
    if "retrieve" in split:
        _divide(split, "retrieve", {"embed": embed_s}, rest="search")
    if "infer" in split:
        _divide(split, "infer", _of_call(calls[-1]) if calls else {}, rest="retry")
        if len(calls) == 1:
            # One call and no pause: what is left is our own reading and handing on.
            split["other"] = split.get("other", 0.0) + split.pop("retry")
    return split


def _of_call(call: Timing) -> dict[str, float]:
    """The parts of one call, in the order they were spent."""
    total = call.total_s or 0.0
    first = total if call.first_token_s is None else call.first_token_s
    dialled = min(first, call.dialled_s or 0.0)
    before = first - dialled
    parts = {"connect": dialled}
    if call.load_s is not None:
        parts["load"] = min(before, call.load_s)
        before -= parts["load"]
    if call.prefill_s is None:
        parts["first_token"] = before
    else:
        parts["prefill"] = min(before, call.prefill_s)
        parts["server_queue"] = before - parts["prefill"]
    return parts | {"decode": total - first}


def _divide(stages: dict[str, float], name: str, parts: Mapping[str, float], *, rest: str) -> None:
    left = stages.pop(name)
    for part, claimed in parts.items():
        given = min(left, max(0.0, claimed))
        stages[part] = stages.get(part, 0.0) + given
        left -= given
    stages[rest] = stages.get(rest, 0.0) + left
