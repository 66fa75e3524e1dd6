"""One tiny call to a model, paid by the installation: whether it answers, tells its usage, and how fast it is."""

from contextlib import aclosing
from dataclasses import dataclass
from decimal import Decimal

from app.billing.types import Payer
from app.catalog.selectors import Target
from app.common.aio import patiently
from app.common.errors import AppError
from app.common.models import uuid7
from app.gate.clients import lone_client
from app.gate.services import reserve
from app.gate.types import CallPlan
from inference_client.errors import InferenceError
from inference_client.types import Message

OUTPUT_TOKENS = 24
_PROMPT = (Message("user", "Count from one to twenty in words."),)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """What the call showed. Unknown is None."""

    problem: str = ""
    """Why there was no answer; the rest is then unknown."""
    tells_usage: bool | None = None
    ttft_ms: int | None = None
    tokens_per_s: float | None = None
    price: Decimal | None = None


async def target_try(target: Target) -> Tried:
    """Ask for a few words. Never raises for what a server, a price or a limit refuses: that is what it finds out."""
    plan = CallPlan(
        reservation_id=uuid7(),
        payer=Payer(team_id=None),
        kind="probe",
        targets=(target,),
        input_tokens=100,
        output_tokens=OUTPUT_TOKENS,
    )
    try:
        async with lone_client():
            admission = await reserve(plan)
            try:
                async with aclosing(admission.infer(_PROMPT)) as batches:
                    async for _ in batches:
                        pass
            finally:
                settled = await patiently(admission.end)
    except (AppError, InferenceError) as exc:
        return Tried(problem=exc.message)
    call = admission.attempts[-1]
    return Tried(
        tells_usage=not call.estimated,
        ttft_ms=call.ttft_ms,
        tokens_per_s=round(1000 / call.itl_ms, 1) if call.itl_ms else None,
        price=settled.price,
    )
