"""Starts the four services (PostgreSQL, Valkey, chat, embedder) that no outside server replaces."""

import http.client
import json
import sys
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from app.embedded import postgres, valkey
from app.embedded.background import background
from app.embedded.chat_model import SLOT_TOKENS, ChatModel, chat_ensure
from app.embedded.children import Program
from app.embedded.errors import EmbeddedError
from app.embedded.outside import parts_wanted
from app.embedded.paths import Layout
from app.embedded.postgres_roles import roles_prepare
from app.embedded.secrets import Secrets
from app.embedded.supervisor import Supervisor
from app.embedded.system_user import place_find
from app.embedded.weights import EMBEDDING_NAME, weights_ensure

T = TypeVar("T")

SLOTS = 4
READY_SECONDS = 90.0
REPOSITORY = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be started and with what."""

    secrets: Secrets
    external: Mapping[str, str]
    ports: Mapping[str, int]
    model: ChatModel
    threads: int
    """Of the chat server; the embedder always has one."""


def http_ok(port: int, path: str, host: str = "127.0.0.1") -> bool:
    """True when GET `path` on loopback answers 200."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=3)
    try:
        connection.request("GET", path, headers={"Host": host})
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _python_server(name: str, module: str, configuration: dict[str, Any]) -> Program:
    port = int(configuration["port"])
    return Program(
        name=name,
        argv=(sys.executable, "-m", module),
        stdin=json.dumps(configuration),
        # Two threads each on two busy cores are a hundred times slower than one.
        environment={"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"},
        ready=lambda: http_ok(port, "/health"),
        folder=REPOSITORY,
    )


def chat_program(plan: Plan) -> Program:
    """llama.cpp's server with the chosen model."""
    configuration = {
        "port": plan.ports["chat"],
        "key": plan.secrets.inference_key,
        "model": str(plan.model.path),
        "name": plan.model.name,
        "slots": SLOTS,
        "slot_tokens": SLOT_TOKENS,
        "threads": plan.threads,
    }
    return _python_server("chat", "app.embedded.chat_server", configuration)


def embedder_program(plan: Plan, cache: Path) -> Program:
    """The embedding server, one thread."""
    configuration = {
        "port": plan.ports["embedder"],
        "key": plan.secrets.embedding_key,
        "folder": str(cache / "e5"),
        "name": EMBEDDING_NAME,
        "threads": 1,
    }
    return _python_server("embedder", "app.embedded.embed_server", configuration)


def _prepare_postgres(supervisor: Supervisor, plan: Plan) -> postgres.Cluster:
    place = place_find(supervisor.layout.data, postgres.binaries())
    if place.cluster.parent != supervisor.layout.data:
        supervisor.say(f"running as root: the database lives in {place.cluster}, owned by {place.user}")
    _refuse_empty_beside_data(supervisor.layout, plan.secrets, place.cluster)
    postgres.cluster_create(place, plan.secrets)
    return postgres.Cluster(place=place, port=plan.ports["postgres"], secrets=plan.secrets)


def _prepare_models(supervisor: Supervisor, plan: Plan, wanted: tuple[str, ...]) -> None:
    cache, say = supervisor.layout.cache, supervisor.say
    # Both in one go when both are missing: one lock, one download.
    weights_ensure(
        cache, say, chat="chat" in wanted and plan.model.is_demonstration, embedder="embedder" in wanted
    )
    if "chat" in wanted:
        chat_ensure(plan.model, cache, say)


def _refuse_empty_beside_data(layout: Layout, secrets: Secrets, cluster: Path) -> None:
    """A directory that has been used but has no database was moved or restored in part: do not begin anew."""
    if (cluster / "PG_VERSION").exists():
        return
    originals = layout.data / "originals"
    if secrets.admin_email or (originals.is_dir() and any(originals.iterdir())):
        raise EmbeddedError(
            f"{layout.data} has been used, but its database {cluster} is not there. Put that folder back or "
            "restore a backup. To begin with an empty database, use a new directory: --data DIR."
        )


def services_start(supervisor: Supervisor, plan: Plan) -> dict[str, str]:
    """Start what is wanted, side by side; returns once the database answers, the others may still load.

    Returns:
        The settings that lead to the services, own and outside ones, by name.
    """
    wanted, cache = parts_wanted(plan.external), supervisor.layout.cache
    steps: dict[str, Future[Any]] = {}
    if "postgres" in wanted:
        steps["postgres"] = background(lambda: _prepare_postgres(supervisor, plan))
    if "valkey" in wanted:
        folder = supervisor.layout.data / "valkey"
        supervisor.start(
            valkey.program(folder=folder, port=plan.ports["valkey"], password=plan.secrets.valkey_password)
        )
    if {"chat", "embedder"} & set(wanted):
        steps["weights"] = background(lambda: _prepare_models(supervisor, plan, wanted))
    cluster: postgres.Cluster | None = None
    if "postgres" in steps:
        cluster = _await(supervisor, steps["postgres"])
        supervisor.start(postgres.program(cluster))
    if "weights" in steps:
        _await(supervisor, steps["weights"])
        _start_wanted(
            supervisor,
            wanted,
            chat=lambda: chat_program(plan),
            embedder=lambda: embedder_program(plan, cache),
        )
    if cluster:
        supervisor.wait_ready(["postgres"], READY_SECONDS)
        roles_prepare(cluster)
    return settings_made(plan, cluster)


def services_wait(supervisor: Supervisor, plan: Plan) -> None:
    """Until every service answers."""
    supervisor.wait_ready(parts_wanted(plan.external), READY_SECONDS)


def _start_wanted(supervisor: Supervisor, wanted: tuple[str, ...], **programs: Callable[[], Program]) -> None:
    for name, make in programs.items():
        if name in wanted:
            supervisor.start(make())


def _await(supervisor: Supervisor, step: "Future[T]") -> T:
    """The value of a background step, requests to stop obeyed meanwhile."""
    while not step.done():
        supervisor.check_stopping()
        time.sleep(0.02)
    return step.result()


def settings_made(plan: Plan, cluster: postgres.Cluster | None) -> dict[str, str]:
    """Every setting that leads to a service. What was set outside wins."""
    ports, secrets = plan.ports, plan.secrets
    made = {"SECRET_KEY": secrets.secret_key, "FIELD_KEYS": ",".join(secrets.field_keys)}
    if cluster:
        made |= {"DATABASE_URL": cluster.app_url, "DATABASE_OWNER_URL": cluster.owner_url}
    if "valkey" in ports:
        made["REDIS_URL"] = valkey.url(ports["valkey"], secrets.valkey_password)
    if "chat" in ports:
        made |= {
            "INFERENCE_URL": f"http://127.0.0.1:{ports['chat']}/v1",
            "INFERENCE_API_KEY": secrets.inference_key,
            "INFERENCE_KIND": "llamacpp",
            "INFERENCE_MODEL": plan.model.name,
            "INFERENCE_SLOTS": str(SLOTS),
            "INFERENCE_CONTEXT_WINDOW": str(SLOT_TOKENS),
            "INFERENCE_DEMONSTRATION": "1" if plan.model.is_demonstration else "0",
        }
    if "embedder" in ports:
        made |= {
            "EMBEDDING_URL": f"http://127.0.0.1:{ports['embedder']}/v1",
            "EMBEDDING_API_KEY": secrets.embedding_key,
            "EMBEDDING_MODEL": EMBEDDING_NAME,
            "EMBEDDING_DIMENSION": "384",
            "EMBEDDING_QUERY_PREFIX": "query: ",
            "EMBEDDING_PASSAGE_PREFIX": "passage: ",
        }
    return made | dict(plan.external)
