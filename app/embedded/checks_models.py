"""`doctor`'s view of the model servers. The samples are real calls: reserved, booked, paid by the installation."""

from collections.abc import Iterable

from asgiref.sync import async_to_sync
from django.conf import settings

from app.billing.types import Payer
from app.catalog.models import Deployment
from app.catalog.selectors import Target, targets
from app.common.errors import AppError
from app.common.models import uuid7
from app.embedded.checks import Check, failed, passed
from app.gate.admission import Admission
from app.gate.clients import lone_client
from app.gate.embedding import embed
from app.gate.services import reserve
from app.gate.types import CallPlan
from inference_client.errors import InferenceError
from inference_client.probe import probe
from inference_client.servers import ServerFacts
from inference_client.types import Message

INSTALLATION = Payer(team_id=None)
_SAMPLE = "Say hello."
_SAMPLE_TOKENS = 64
"""More than the sample and any chat template around it."""


def embedder() -> Check:
    """A sample text through the embedder, and the dimension of its vector."""
    try:
        found = async_to_sync(embed)(["a sample text"], role="passage", payer=INSTALLATION)
    except (AppError, InferenceError) as exc:
        return failed("embedder", f"{exc.message} Check EMBEDDING_URL and its server.")
    dimension = len(found.vectors[0])
    if dimension != settings.EMBEDDING_DIMENSION:
        return failed(
            "embedder",
            f"{found.model} gives {dimension} numbers, EMBEDDING_DIMENSION says {settings.EMBEDDING_DIMENSION}; "
            "correct the setting, or choose the model it was made for.",
        )
    counted = "reports usage" if found.input_tokens else "reports no usage, so its tokens are estimated"
    return passed("embedder", f"{found.model} gives {dimension} numbers and {counted}.")


def chat() -> Iterable[Check]:
    """A sample through the preferred chat model of each server: usage and window."""
    servers: dict[str, Target] = {}
    for target in targets(Deployment.Purpose.CHAT.value):
        servers.setdefault(target.backend_name, target)
    if not servers:
        yield failed(
            "chat server", "No chat model is set up; set INFERENCE_URL and run `manage.py first_run`."
        )
    yield from map(_server, servers.values())


def _server(target: Target) -> Check:
    try:
        admission, facts = async_to_sync(_sample)(target)
    except (AppError, InferenceError) as exc:
        return failed("chat server", f"{target.backend_name}: {exc.message}")
    return _judge(target, admission, facts)


async def _sample(target: Target) -> tuple[Admission, ServerFacts]:
    facts = await probe(target.base_url, target.api_key or None)
    plan = CallPlan(
        reservation_id=uuid7(),
        payer=INSTALLATION,
        kind="chat",
        targets=(target,),
        input_tokens=_SAMPLE_TOKENS,
        output_tokens=4,
    )
    async with lone_client():
        admission = await reserve(plan)
        try:
            async for _ in admission.infer([Message(role="user", content=_SAMPLE)]):
                pass
        finally:
            await admission.end()
    return admission, facts


def _judge(target: Target, admission: Admission, facts: ServerFacts) -> Check:
    name = f"{target.public_name} on {target.backend_name}"
    attempt = admission.attempts[-1]
    if attempt.estimated:
        return failed(
            "chat server",
            f"{name} answers but reports no usage ({attempt.estimate_reason}), so the ledger holds estimates; "
            "let it send the usage block, or choose its INFERENCE_KIND.",
        )
    served = next((model for model in facts.models if model.name == target.upstream_model), None)
    window = served.context_window if served else None
    if window and target.context_window and target.context_window > window:
        return failed(
            "chat server",
            f"{name} has a window of {window} tokens, the catalog says {target.context_window}; correct it, or "
            "long prompts are cut or refused.",
        )
    known = target.context_window or window
    size = f"{known} tokens" if known else "unknown, so prompts are kept short"
    return passed("chat server", f"{name} answers, reports usage; its window is {size}.")
