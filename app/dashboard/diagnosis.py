"""Why answers have become slower: which stage's time grew, what else changed with it, and where to look. Pure.

Each cause gets the milliseconds of a turn that it explains; the one that explains most is named first.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from app.chat.stages import TO_FIRST_TOKEN

FULL = 0.95
"""Share of the KV cache from which requests wait for room or are thrown out."""
QUEUED = 0.5
"""Requests that wait inside a server on average; from here on it is not by chance."""
FEW_TURNS = 5
"""Turns below which nothing is said about stages."""
WORTH_MS = 20.0
WORTH_SHARE = 0.1
"""What grew by less is noise: of the time to first token as it was, or of the whole turn for what comes after."""
SILENT_SHARE = 0.7
"""From this share of the lost time after silences on, it is the waking up that costs."""
BATCHED_BADLY = 0.6
"""From this share of the growth in running requests on that a token takes longer, they wait for each other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What a server told on average; None: it does not tell."""

    running: float | None = None
    waiting: float | None = None
    kv_cache_share: float | None = None
    preemptions: float | None = None
    """Since the server started, at the end of the span less at its beginning."""
    round_trip_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Spell:
    """One span of time: turns as we saw them, the server that answered most of them as it saw itself."""

    turns: int = 0
    stages: Mapping[str, float] = field(default_factory=dict)
    """Mean milliseconds a turn."""
    input_tokens: float = 0.0
    output_tokens: float = 0.0
    itl_ms: float | None = None
    load: Load = field(default_factory=Load)


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """A queue of background work."""

    name: str
    waiting: int
    served: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What is known."""

    before: Spell
    after: Spell
    silent_share: float | None = None
    """Of the first-token time that was lost, the share after a silence."""
    queues: Sequence[Queue] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A cause, with what it rests on."""

    cause: str
    title: str
    because: str
    """The figures."""
    look_at: str
    grew_ms: float
    """Of a turn, what it explains; infinite for what stands still."""


@dataclass(frozen=True, slots=True)
class _Words:
    title: str
    look_at: str


_TEXTS: Mapping[str, _Words] = {
    "slow_embedder": _Words(
        "The embedder is slow",
        "Look at the embedding server's load, and whether ingestion or somebody else shares it.",
    ),
    "slow_search": _Words(
        "Searching the documents is slow",
        "Look at PostgreSQL: locks, memory against the size of the vector index, and whether autovacuum keeps up.",
    ),
    "cold_start": _Words(
        "The server loads the model again after a silence",
        "Let it keep the model in memory (Ollama: keep_alive; llama-swap: ttl), or keep one instance warm.",
    ),
    "poor_batching": _Words(
        "The server does not batch",
        "Each request slows the others as if they stood in line. Look at its batching options (vLLM: --max-num-seqs; "
        "llama.cpp: --parallel, --cont-batching), or give it fewer slots here.",
    ),
    "saturated_server": _Words(
        "The server has more requests than it can take",
        "Add a deployment of the same model, move background work elsewhere, or let a smaller model take a share.",
    ),
    "kv_memory": _Words(
        "The server's KV cache is full",
        "It throws running requests out and starts them again. Shorten contexts, allow fewer slots, or give it more "
        "memory.",
    ),
    "network": _Words(
        "The way to the server is slow",
        "Its own page takes longer to come as well, so look at the network, a proxy or TLS between here and there.",
    ),
    "no_worker": _Words(
        "Nobody works on a queue",
        "Start a worker for it (`celery -A app worker`), or look at why the last one stopped.",
    ),
    "slow_disk": _Words(
        "Commits take long",
        "Holding and booking wait for the database's disk: look at its fsync times, its volume, and checkpoints.",
    ),
    "long_prompts": _Words(
        "Prompts have become longer",
        "Reading them takes its time: look at the passage budget and at long conversations.",
    ),
    "slow_server": _Words(
        "The server itself has become slower",
        "It neither queues nor lacks memory: look at its clock, temperature, other load on that machine, its last "
        "update.",
    ),
    "our_line": _Words(
        "Calls wait in our own line",
        "The deployment's slots are all in use. Allow more if the server can take them, or add a deployment.",
    ),
    "retries": _Words(
        "Calls are sent more than once",
        "Look at the errors of the deployment: failed calls and the pauses after them cost this time.",
    ),
}


def findings(evidence: Evidence) -> list[Finding]:
    """The causes worth naming, the weightiest first; empty when nothing grew."""
    found = list(_queues(evidence.queues))
    before, after = evidence.before, evidence.after
    if min(before.turns, after.turns) >= FEW_TURNS:
        causes: dict[str, float] = {}
        for cause, grew in _worth(evidence):
            causes[cause] = causes.get(cause, 0.0) + grew
        found += [_named(cause, _because(cause, grew, evidence), grew) for cause, grew in causes.items()]
    return sorted(found, key=lambda finding: -finding.grew_ms)


def _worth(evidence: Evidence) -> Iterator[tuple[str, float]]:
    """What grew by more than noise."""
    before, after = evidence.before, evidence.after
    whole = sum(before.stages.values())
    first = sum(before.stages.get(name, 0.0) for name in TO_FIRST_TOKEN)
    for seen, against in (
        ((*_ours(before, after), *_before_text(evidence)), first),
        (_writing(before, after), whole),
    ):
        yield from ((cause, grew) for cause, grew in seen if grew >= max(WORTH_MS, WORTH_SHARE * against))


def _queues(queues: Sequence[Queue]) -> Iterator[Finding]:
    for queue in queues:
        if queue.waiting and not queue.served:
            because = f"{queue.waiting} tasks wait in `{queue.name}`, and no worker takes from it."
            yield _named("no_worker", because, float("inf"))


def _grew(before: Spell, after: Spell, *names: str) -> float:
    return max(0.0, sum(after.stages.get(name, 0.0) - before.stages.get(name, 0.0) for name in names))


def _ours(before: Spell, after: Spell) -> Iterator[tuple[str, float]]:
    """What happens on our side of the wire."""
    yield "slow_embedder", _grew(before, after, "embed")
    yield "slow_search", _grew(before, after, "search")
    yield "slow_disk", _grew(before, after, "reserve", "settle")
    yield "retries", _grew(before, after, "retry")
    yield "cold_start", _grew(before, after, "load")
    yield "network", _grew(before, after, "connect")
    waited = _grew(before, after, "gate_wait")
    busy = (after.load.waiting or 0) >= QUEUED or _longer(before.itl_ms, after.itl_ms)
    yield ("saturated_server" if busy else "our_line"), waited


def _before_text(evidence: Evidence) -> Iterator[tuple[str, float]]:
    """The time to first token at the server: told apart by what else changed."""
    before, after = evidence.before, evidence.after
    lost = _grew(before, after, "server_queue", "prefill", "first_token")
    way = _way_ms(before.load, after.load)
    if way * 2 >= lost > 0:
        yield "network", lost
    elif _crowded(before.load, after.load):
        yield "kv_memory", lost
    elif _queueing(before.load, after.load):
        yield "saturated_server", lost
    elif (evidence.silent_share or 0.0) >= SILENT_SHARE:
        yield "cold_start", lost
    elif after.input_tokens > 1.5 * before.input_tokens:
        yield "long_prompts", lost
    else:
        yield "slow_server", lost


def _writing(before: Spell, after: Spell) -> Iterator[tuple[str, float]]:
    """The time between tokens; longer answers alone are no fault."""
    if before.itl_ms is None or after.itl_ms is None:
        return
    lost = max(0.0, after.itl_ms - before.itl_ms) * after.output_tokens
    if _crowded(before.load, after.load):
        yield "kv_memory", lost
    elif _batched_badly(before, after):
        yield "poor_batching", lost
    elif _queueing(before.load, after.load):
        yield "saturated_server", lost
    elif _way_ms(before.load, after.load) >= WORTH_MS:
        yield "network", lost
    else:
        yield "slow_server", lost


def _longer(before: float | None, after: float | None) -> bool:
    return before is not None and after is not None and after > 1.3 * before


def _way_ms(before: Load, after: Load) -> float:
    """How much longer the way to the server and back has become."""
    if before.round_trip_s is None or after.round_trip_s is None:
        return 0.0
    return max(0.0, after.round_trip_s - before.round_trip_s) * 1e3


def _crowded(before: Load, after: Load) -> bool:
    thrown_out = (after.preemptions or 0.0) > (before.preemptions or 0.0)
    return (after.kv_cache_share or 0.0) >= FULL or thrown_out


def _queueing(before: Load, after: Load) -> bool:
    return (after.waiting or 0.0) >= QUEUED and (after.waiting or 0.0) > 2 * (before.waiting or 0.0)


def _batched_badly(before: Spell, after: Spell) -> bool:
    """Whether a token takes longer in step with how many requests run, which a server that batches avoids."""
    if before.itl_ms is None or after.itl_ms is None:
        return False
    were, are = before.load.running, after.load.running
    if were is None or are is None or are < max(1.5, 1.5 * were):
        return False
    return after.itl_ms / max(before.itl_ms, 0.01) - 1 >= BATCHED_BADLY * (are / max(were, 1.0) - 1)


def _named(cause: str, because: str, grew: float) -> Finding:
    words = _TEXTS[cause]
    return Finding(cause=cause, title=words.title, because=because, look_at=words.look_at, grew_ms=grew)


def _because(cause: str, grew: float, evidence: Evidence) -> str:
    """The figures, and what else speaks for this cause."""
    was, now = (sum(spell.stages.values()) for spell in (evidence.before, evidence.after))
    words = f"It costs a turn {grew:.0f} ms more than before."
    if now > was:
        words += f" A whole turn took {was:.0f} ms and takes {now:.0f} ms."
    return " ".join((words, *_witnesses(cause, evidence)))


def _witnesses(cause: str, evidence: Evidence) -> Iterator[str]:
    before, after = evidence.before, evidence.after
    load, was = after.load, before.load
    if cause == "saturated_server" and load.waiting is not None:
        yield f"{load.waiting:.0f} requests wait inside the server."
    elif cause == "kv_memory" and load.kv_cache_share is not None:
        yield f"Its KV cache is {load.kv_cache_share:.0%} full."
    elif cause == "poor_batching" and load.running and before.itl_ms and after.itl_ms:
        yield f"With {load.running:.0f} running, a token takes {after.itl_ms:.0f} ms, not {before.itl_ms:.0f}."
    elif cause == "network" and load.round_trip_s is not None and was.round_trip_s is not None:
        yield f"Its page takes {load.round_trip_s * 1e3:.0f} ms, not {was.round_trip_s * 1e3:.0f}."
    elif cause == "cold_start" and evidence.silent_share:
        yield f"{evidence.silent_share:.0%} of it falls on the first call after a silence."
    elif cause == "long_prompts":
        yield f"Prompts have {after.input_tokens:.0f} tokens, not {before.input_tokens:.0f}."
