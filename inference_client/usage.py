"""Reading usage blocks: every server's words for the same few numbers, turned into one value. No IO.

The two conventions that must never be mixed: whether the input number already contains cache reads and
writes, and whether the output number already contains reasoning. Both are data in a `UsageShape`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from inference_client.types import Buckets, JsonObject, Usage, UsageState

Paths = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageShape:
    """Where a server's usage block keeps what. Paths are dotted; of several the first present one counts.

    In a list of objects a step such as `ttl=1h` means the first one that says so.
    """

    input: Paths
    output: Paths
    total: Paths = ()
    cache_read: Paths = ()
    cache_write: Paths = ()
    reasoning: Paths = ()
    input_more: Paths = ()
    """Numbers to add to the input (tool-use prompts of Gemini)."""
    input_has_cache: bool = True
    output_has_reasoning: bool = True
    detail: dict[str, Paths] = field(default_factory=dict)
    """Finer numbers, by the names of `Buckets`."""


def number(value: object) -> int | None:
    """`value` as a whole number of at least 0, else None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if 0 <= value <= 2**53 else None


def first(block: JsonObject, paths: Paths) -> int | None:
    """The first number above 0 under one of the dotted `paths`; else 0 where any of them says so.

    Servers between us and a provider put its names beside their own, and a 0 under the one that they do not fill.
    """
    zero: int | None = None
    for path in paths:
        node: Any = block
        for key in path.split("."):
            node = node.get(key) if isinstance(node, dict) else _row(node, key)
        found = number(node)
        if found:
            return found
        zero = found if zero is None else zero
    return zero


def _row(rows: object, step: str) -> object:
    name, told, value = step.partition("=")
    if not told or not isinstance(rows, list):
        return None
    return next((row for row in rows if isinstance(row, dict) and row.get(name) == value), None)


def merged(old: JsonObject | None, new: JsonObject) -> dict[str, Any]:
    """`old` overwritten field by field with whatever `new` tells; numbers are cumulative, so never added, and none of
    them goes back to 0."""
    result = dict(old or {})
    for key, value in new.items():
        before = result.get(key)
        if isinstance(value, dict) and isinstance(before, dict):
            result[key] = merged(before, value)
        elif value is not None and (value or not number(before)):
            result[key] = value
    return result


def usage_read(block: JsonObject | None, shape: UsageShape, *, precount: int | None = None) -> Usage:
    """`block` as a Usage. `precount` is our own count of the whole input, a witness for the convention."""
    if not block:
        return Usage()
    inp, out = first(block, shape.input), first(block, shape.output)
    read, write = first(block, shape.cache_read), first(block, shape.cache_write)
    reasoning, total = first(block, shape.reasoning), first(block, shape.total)
    cached = (read or 0) + (write or 0)
    ambiguous = False
    if inp is not None:
        inclusive = shape.input_has_cache
        if cached:
            inclusive, ambiguous = convention(
                inp=inp, cached=cached, out=out or 0, total=total, precount=precount, declared=inclusive
            )
        inp += sum(first(block, (path,)) or 0 for path in shape.input_more) + (0 if inclusive else cached)
    apart, doubtful = _reasoning_apart(shape, inp=inp, out=out, reasoning=reasoning, total=total)
    if apart and (out is not None or reasoning is not None):
        out = (out or 0) + (reasoning or 0)
    # What is in the sum and under no name was used all the same: somebody should look.
    doubtful = doubtful or (None not in {inp, out, total} and total != (inp or 0) + (out or 0))
    return Usage(
        input_tokens=inp,
        output_tokens=out,
        cache_read=read,
        cache_write=write,
        reasoning=reasoning,
        state=_state(inp, out),
        raw=block,
        ambiguous=ambiguous or doubtful or cached > (inp or 0),
        detail=dict(_details(block, shape)),
    )


def _reasoning_apart(
    shape: UsageShape, *, inp: int | None, out: int | None, reasoning: int | None, total: int | None
) -> tuple[bool, bool]:
    """(whether the output number lacks the reasoning, whether that is in doubt).

    Some servers of one shape count it in and some beside; where it is beside, the total shows it.
    """
    if not shape.output_has_reasoning or not reasoning or out is None:
        return not shape.output_has_reasoning, False
    if total is not None and total == (inp or 0) + out + reasoning:
        return True, False
    return False, reasoning > out


def usage_sum(parts: Sequence[Usage]) -> Usage:
    """What several requests of one call used together: unknown as soon as one of them is."""
    if len(parts) == 1:
        return parts[0]
    inputs = [part.input_tokens for part in parts]
    if not parts or None in inputs:
        return Usage(raw={"parts": [part.raw for part in parts]})
    total = sum(filter(None, inputs))
    return Usage(input_tokens=total, state=_state(total, None), raw={"parts": [part.raw for part in parts]})


def convention(
    *, inp: int, cached: int, out: int, total: int | None, precount: int | None, declared: bool
) -> tuple[bool, bool]:
    """Whether `inp` contains `cached`: (the reading two of three witnesses share, do they disagree).

    The total alone is no referee: servers were seen that count the cache twice in it as well.
    """
    votes = [declared]
    if cached > inp:
        # A part is not larger than its whole.
        votes.append(False)
    if total is not None and total in (inp + out, inp + cached + out):
        votes.append(total == inp + out)
    if precount is not None:
        votes.append(abs(inp - precount) <= abs(inp + cached - precount))
    for_inclusive = sum(votes)
    if for_inclusive * 2 == len(votes):
        return declared, True
    return for_inclusive * 2 > len(votes), 0 < for_inclusive < len(votes)


def buckets(usage: Usage) -> Buckets:
    """`usage` split so that no token stands in two places. Unknown counts as 0: check `state` first.

    Sound and pictures that came from a cache are told twice, there and by their kind: the cache counts.
    """
    known = {f.name: usage.detail.get(f.name, 0) for f in fields(Buckets)}
    read, write = usage.cache_read or 0, usage.cache_write or 0
    lasting = known["cache_write_mid"] + known["cache_write_long"] + known["cache_write_xlong"]
    known["cache_read"] = read
    known["cache_write_short"] = max(0, write - lasting)
    known["reasoning"] = usage.reasoning or 0
    _fitted(known, ("input_image", "input_audio"), (usage.input_tokens or 0) - read - max(write, lasting))
    _fitted(known, ("rejected_prediction", "output_audio"), (usage.output_tokens or 0) - known["reasoning"])
    apart_in = read + max(write, lasting) + known["input_audio"] + known["input_image"]
    apart_out = known["reasoning"] + known["output_audio"] + known["rejected_prediction"]
    known["input_uncached"] = max(0, (usage.input_tokens or 0) - apart_in)
    known["output_text"] = max(0, (usage.output_tokens or 0) - apart_out)
    return Buckets(**known)


def _fitted(known: dict[str, int], names: tuple[str, ...], room: int) -> None:
    """Cut what `names` hold together down to `room`."""
    for name in names:
        excess = sum(known[each] for each in names) - max(0, room)
        known[name] -= max(0, min(known[name], excess))


def _state(inp: int | None, out: int | None) -> UsageState:
    if inp is None and out is None:
        return "absent"
    return "reported" if inp or out else "zero"


def _details(block: JsonObject, shape: UsageShape) -> Iterator[tuple[str, int]]:
    for name, paths in shape.detail.items():
        found = first(block, paths)
        if found:
            yield name, found
