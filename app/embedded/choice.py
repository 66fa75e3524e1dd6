"""Which chat server this installation uses, asked once and remembered.

Order: `INFERENCE_URL` in the environment, `--model`, what was chosen before, what a person picks now at the
terminal, and at last the demonstration model, with the command that would take a server that was found.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from app.embedded.chat_model import PINNED, ChatModel, chat_model
from app.embedded.discovery import Found, provider_keys
from app.embedded.paths import Layout, write_private
from app.embedded.supervisor import Say


@dataclass(frozen=True, slots=True)
class Choice:
    """The packaged server's model, and settings of an outside server that takes its place, if any."""

    model: ChatModel
    outside: Mapping[str, str] = field(default_factory=dict)


def remembered(layout: Layout) -> dict[str, str]:
    """What was chosen at an earlier start: {"model": …} or the INFERENCE_* settings."""
    try:
        return {str(k): str(v) for k, v in json.loads(layout.choice.read_text()).items()}
    except (OSError, ValueError, AttributeError):
        return {}


def model_choose(layout: Layout, asked: str) -> Choice:
    """`--model`: remembered for later starts."""
    chosen = chat_model(asked, layout.cache)
    if chosen.is_demonstration:
        layout.choice.unlink(missing_ok=True)
    else:
        write_private(layout.choice, json.dumps({"model": asked if asked in PINNED else str(chosen.path)}))
    return Choice(model=chosen)


def choose(
    layout: Layout, *, find: Callable[[], list[Found]], ask: Callable[[str], str] | None, say: Say
) -> Choice:
    """What was chosen before; else what was found on this machine, if a person wants it.

    Args:
        find: looks for servers.
        ask: puts a question to a person; None when nobody is at the terminal.
    """
    before = remembered(layout)
    if "model" in before:
        return Choice(model=chat_model(before["model"], layout.cache))
    fallback = chat_model(None, layout.cache)
    if before.get("INFERENCE_URL"):
        say(f"using the chat server chosen before: {before['INFERENCE_URL']}")
        return Choice(model=fallback, outside=before)
    offers = [(found, name) for found in find() for name in found.models[:5]]
    if not offers:
        return Choice(model=fallback)
    _list(offers, say)
    picked = _pick(offers, ask) if ask else None
    if picked is None:
        found, name = offers[0]
        say(f"the demonstration model answers. To use {name}: {found.command(name)}")
        return Choice(model=fallback)
    found, name = picked
    write_private(layout.choice, json.dumps(found.settings(name)))
    return Choice(model=fallback, outside=found.settings(name))


def _list(offers: Sequence[tuple[Found, str]], say: Say) -> None:
    say("chat models found on this machine:")
    for number, (found, name) in enumerate(offers, 1):
        say(f"  {number}. {name} ({found.kind} at {found.url})")


def _pick(offers: Sequence[tuple[Found, str]], ask: Callable[[str], str]) -> tuple[Found, str] | None:
    answer = ask(f"Use one of them? 1 to {len(offers)}, or Enter for the small demonstration model: ").strip()
    if answer.isdigit() and 1 <= int(answer) <= len(offers):
        return offers[int(answer) - 1]
    return None


def keys_mention(environment: Mapping[str, str], say: Say) -> None:
    """Say that a provider's key is there and unused."""
    if names := provider_keys(environment):
        say(
            f"a key for {', '.join(names)} is in the environment; it is not used unless you add that provider."
        )
