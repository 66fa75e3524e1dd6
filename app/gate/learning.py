"""Our count corrected by the servers' own figures: for each deployment, from its last calls, off the hot path."""

from datetime import timedelta
from uuid import UUID

from app.billing.attempts import CountedCall, calls_counted, deployments_called
from app.catalog.models import Deployment
from app.catalog.services import token_fit_get, token_fit_put
from app.common.clock import now
from app.gate.attempts import INPUT_SHORT
from inference_client.learned import PRIOR, Facts, learned_from

LAST_CALLS = 500
LOOK_BACK = timedelta(minutes=10)
"""Deployments that were called in this time are learned anew; the task runs far more often."""


def counts_learn() -> list[UUID]:
    """Learn from every deployment that was called lately and has news. Safe to repeat; returns those that changed."""
    changed = []
    for deployment_id, newest in deployments_called(now() - LOOK_BACK).items():
        row = Deployment.objects.filter(id=deployment_id).first()
        if row is None:
            continue
        fit = token_fit_get(row)
        if fit.last_call_at is not None and fit.last_call_at >= newest:
            continue
        deployment_learn(row)
        changed.append(deployment_id)
    return changed


def deployment_learn(row: Deployment) -> None:
    """Learn one deployment's counter from its last calls. Calls whose prompt was cut teach nothing but the alarm."""
    calls = calls_counted(row.id, tokenizer=row.tokenizer, limit=LAST_CALLS)
    short = next((call for call in calls if INPUT_SHORT in call.flags), None)
    token_fit_put(
        deployment=row,
        learned=learned_from([(facts, call.told) for call in reversed(calls) if (facts := _facts(call))]),
        last_call_at=calls[0].at if calls else None,
        short=(short.at, short.local, short.told) if short else None,
    )


def _facts(call: CountedCall) -> Facts | None:
    if call.facts is None or len(call.facts) != len(PRIOR) or INPUT_SHORT in call.flags:
        return None
    return Facts(*call.facts)
