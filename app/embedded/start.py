"""`up`, from the lock to the line that says ready."""

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from app.embedded.chat_model import ChatModel
from app.embedded.errors import EmbeddedError, os_sentence
from app.embedded.leftovers import leftovers_stop
from app.embedded.lock import lock_take
from app.embedded.outside import parts_wanted
from app.embedded.paths import Layout, write_private
from app.embedded.ports import ports_choose
from app.embedded.product import (
    STOP_ORDER,
    Product,
    first_run,
    handbook_wait,
    migrate,
    product_start,
    product_wait,
    static_gather,
)
from app.embedded.secrets import Secrets, field_keys_given, first_run_keep, secrets_open
from app.embedded.services import Plan, services_start, services_wait
from app.embedded.supervisor import Say, Supervisor


@dataclass(frozen=True, slots=True)
class Options:
    """What was asked for, and what the settings say."""

    layout: Layout
    model: ChatModel
    environment: Mapping[str, str]
    """Of this process, handed on to the children."""
    external: Mapping[str, str]
    """Outside servers by the variable that names them."""
    public_url: str | None
    port: int | None
    threads: int
    services_only: bool
    drain_seconds: int
    queues: Mapping[str, tuple[str, ...]]


def default_threads() -> int:
    """Of the chat server: one core is left to everything else."""
    return max(1, (os.cpu_count() or 1) - 1)


def up(options: Options, *, say: Say, announce: Callable[[str], None]) -> None:
    """Start everything, announce it, watch over it until asked to stop, and end it in order.

    Args:
        say: takes a line of progress.
        announce: takes the one line that begins with `ready `.
    Raises:
        EmbeddedError: it could not start; nothing is left running.
    """
    layout = options.layout
    try:
        lock = lock_take(layout)
        supervisor = Supervisor(layout, environment=options.environment, say=say)
        supervisor.signals_take()
        try:
            leftovers_stop(layout, say)
            say(f"starting in {layout.data}")
            announce(_start(supervisor, options))
            supervisor.watch()
            say("stopping")
        finally:
            supervisor.stop(STOP_ORDER)
            layout.run.unlink(missing_ok=True)
            lock.file.close()
    except OSError as exc:
        raise EmbeddedError(os_sentence(exc, layout.data)) from exc


def _start(supervisor: Supervisor, options: Options) -> str:
    layout = options.layout
    secrets = secrets_open(layout, field_keys_given(options.environment))
    names = parts_wanted(options.external) + (() if options.services_only else ("web",))
    ports = ports_choose(layout, names, web=options.port)
    plan = Plan(
        secrets=secrets, external=options.external, ports=ports, model=options.model, threads=options.threads
    )
    settings = services_start(supervisor, plan)
    if options.services_only:
        services_wait(supervisor, plan)
        write_private(layout.env, json.dumps(settings, indent=1))
        _run_write(layout, "", secrets, settings)
        return f"ready services in {layout.data}"
    url = f"http://127.0.0.1:{ports['web']}/"
    settings["PUBLIC_URL"] = options.public_url or url.rstrip("/")
    write_private(layout.env, json.dumps(settings, indent=1))
    secrets = _product(supervisor, options, plan, settings)
    _run_write(layout, url, secrets, settings)
    return f"ready {url} sign in as {secrets.admin_email}, password in {layout.run}"


def _product(supervisor: Supervisor, options: Options, plan: Plan, settings: Mapping[str, str]) -> Secrets:
    """Everything above the services; the secrets with what the first run added to them."""
    static_ready = static_gather(supervisor)
    migrate(supervisor, settings)
    static_ready()
    product = Product(port=plan.ports["web"], drain_seconds=options.drain_seconds, queues=options.queues)
    product_start(supervisor, product)
    made = first_run(supervisor)
    secrets = first_run_keep(options.layout, plan.secrets, made)
    if made.get("notes"):
        supervisor.say(made["notes"])
    if made.get("admin_password"):
        supervisor.say(f"administrator: {secrets.admin_email}, password: {secrets.admin_password}")
    services_wait(supervisor, plan)
    handbook_ready = handbook_wait(supervisor) if made.get("handbook_waits") else lambda: ""
    product_wait(supervisor, product)
    handbook_ready()
    return secrets


def _run_write(layout: Layout, url: str, secrets: Secrets, settings: Mapping[str, str]) -> None:
    """run.json: where everything is and how to get in."""
    facts = {
        "url": url,
        "admin_email": secrets.admin_email,
        "admin_password": secrets.admin_password,
        "api_key": secrets.api_key,
        "database_url": settings.get("DATABASE_URL", ""),
        "redis_url": settings.get("REDIS_URL", ""),
        "inference_url": settings.get("INFERENCE_URL", ""),
        "embedding_url": settings.get("EMBEDDING_URL", ""),
    }
    write_private(layout.run, json.dumps(facts, indent=1) + "\n")
