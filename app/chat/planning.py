"""From an `Ask` to what is counted and held: the pre-count and the plan of the call."""

from functools import lru_cache

from app.billing.types import Payer
from app.catalog.selectors import Target
from app.chat import precount
from app.chat.precount import Accuracy, Estimate
from app.chat.prompting import system_of, text_of
from app.chat.types import Ask
from app.common.models import uuid7
from app.gate.types import CallPlan
from inference_client.tokens import counter

EXACT = Accuracy("exact", 0)
ESTIMATED = Accuracy("estimated", 15)
"""tiktoken against tokenizers of other families on English prose; drift per model is stored with each call."""


@lru_cache(maxsize=8192)
def _counted(tokenizer: str, text: str) -> int:
    """History is counted once, not again at every turn of a conversation."""
    return counter(tokenizer).count(text)


def accuracy_of(target: Target) -> Accuracy:
    """Exact where the tokenizer is the model's own."""
    return EXACT if counter(target.tokenizer).exact_for(target.upstream_model) else ESTIMATED


def estimate_of(ask: Ask) -> Estimate:
    """The pre-count of this turn over its first-choice deployment. Errors: ContextTooLong."""
    target = ask.targets[0]

    def count(text: str) -> int:
        return _counted(target.tokenizer, text)

    system, question = system_of(ask), ask.question
    if ask.messages is not None:
        # A `/v1` caller's messages are never trimmed: all but the question count as given.
        system = "\n".join([system, *(text_of(m) for m in ask.messages if text_of(m) != question)]).strip()
    return precount.estimate(
        count=count,
        tokenizer=target.tokenizer,
        accuracy=accuracy_of(target),
        window=target.context_window,
        output_cap=target.max_output_tokens,
        output_wanted=ask.max_output_tokens,
        system=system,
        history=ask.history,
        question=question,
        searches=bool(ask.collections),
        retrieved_p50=ask.retrieved_p50,
    )


def plan_of(ask: Ask, estimate: Estimate) -> CallPlan:
    """What to hold: everything the turn may take, over the dearest of its deployments."""
    return CallPlan(
        reservation_id=uuid7(),
        payer=payer_of(ask),
        kind="chat",
        targets=ask.targets,
        input_tokens=estimate.held_input,
        output_tokens=estimate.max_output_tokens,
        embedding=ask.embedding,
        query_tokens=_query_tokens(ask, estimate) if ask.embedding else 0,
        turn_id=ask.turn_id,
        request_id=ask.request_id,
    )


def _query_tokens(ask: Ask, estimate: Estimate) -> int:
    """The query goes to the embedder once, and with quotes so do the sentences of the passages."""
    sentences = 2 * estimate.retrieved_max if ask.targets[0].is_demonstration else 0
    return 2 * estimate.draft + sentences + 16


def payer_of(ask: Ask) -> Payer:
    """One payer, a team; the person and the key are whose allowances must have room too."""
    return Payer(
        team_id=ask.team_id,
        account_id=ask.caller.account_id,
        user_id=ask.caller.user_id,
        key_id=ask.caller.key_id,
    )
