"""What is done about a call that failed: another deployment, once more, or nothing; and what the log says."""

import logging

from app.billing.types import Attempt
from app.catalog.selectors import Target
from inference_client.errors import BadAuth, InferenceError, ModelMissing, Overloaded, Throttled
from inference_client.retry import Retry

log = logging.getLogger(__name__)
RETRY = Retry()


def worth_another(exc: InferenceError) -> bool:
    """Whether a failure is the deployment's and not the request's."""
    return exc.retryable or exc.never_sent or isinstance(exc, BadAuth | ModelMissing)


def delay(exc: InferenceError, sendings: int) -> float | None:
    """Seconds to wait before sending again what never arrived or was turned away; None: it may have cost something."""
    certain = exc.never_sent or isinstance(exc, Throttled | Overloaded)
    return RETRY.delay(exc, sendings) if certain else None


def log_failure(target: Target, exc: InferenceError) -> None:
    """That the next deployment is tried, if there is one."""
    log.warning(
        "A deployment failed before its first token.",
        extra={
            "data": {
                "deployment": target.public_name,
                "backend": target.backend_name,
                "error": type(exc).__name__,
            }
        },
    )


def log_short(target: Target, attempt: Attempt) -> None:
    """That a prompt may have been cut without a word."""
    log.warning(
        "A server says that it read fewer tokens than were sent; it may cut prompts in silence.",
        extra={
            "data": {
                "deployment": target.public_name,
                "backend": target.backend_name,
                "sent": attempt.local_input_tokens,
                "read": attempt.buckets.input_total,
            }
        },
    )
