"""What a server's own words about itself mean: answers to a probe's questions in, facts out. No IO."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeGuard

import orjson

from inference_client.adapters.json_tools import items, obj, text_of
from inference_client.adapters.kinds import GENERIC, Kind, kind_of
from inference_client.servers import ModelFacts, ModelStatus
from inference_client.usage import number

Answer = tuple[int, bytes]
"""Status and body."""
Answers = Mapping[str, Answer | None]
"""By the question's path; None where nothing answered."""
_WINDOWS = (
    "max_model_len",
    "context_length",
    "context_window",
    "max_context_length",
    "max_input_tokens",
    "inputTokenLimit",
)
_OUTPUTS = ("max_output_tokens", "max_completion_tokens", "max_tokens")
_STATUS: Mapping[str, ModelStatus] = {
    "loaded": "loaded",
    "ready": "loaded",
    "loading": "loading",
    "unloaded": "absent",
    "sleeping": "absent",
    "unavailable": "absent",
}


def kind_by(answers: Answers) -> Kind:
    """The kind of server, from what only it answers."""
    owners = {text_of(model.get("owned_by")) for model in _rows(answers["/models"])}
    for owner in ("llamacpp", "vllm"):
        if owner in owners:
            return kind_of(owner)
    if version_in(answers["/api/version"]):
        return kind_of("ollama-v1")
    if "default_generation_settings" in object_in(answers["/props"]):
        return kind_of("llamacpp")
    if {"model_id", "max_total_tokens"} <= object_in(answers["/info"]).keys():
        return kind_of("tgi-v1")
    return kind_of("vllm") if version_in(answers["/version"]) else GENERIC


def is_triton(about: Answer | None) -> bool:
    """By an extension only Triton has; the name in its answer can be set."""
    return "schedule_policy" in items(object_in(about).get("extensions"))


def models_in(kind: Kind, answers: Answers) -> tuple[ModelFacts, ...]:
    """The models a server lists, and of each whether it is in memory, where that is told."""
    models = tuple(model for row in _rows(answers["/models"]) if (model := _model(row)) is not None)
    match kind.name:
        case "llamacpp":
            return _of_llamacpp(models, answers)
        case "vllm":
            # It lists what it serves, and listens only when that is loaded.
            return tuple(replace(model, status="loaded") for model in models)
        case "tgi-v1":
            return _of_tgi(models, answers)
        case "ollama-v1":
            return _of_ollama(models, answers)
    return models


def triton_models_in(index: Answer | None) -> tuple[ModelFacts, ...]:
    """What Triton's repository holds and is loaded, or is on its way."""
    found = {
        name: status
        for row in map(obj, items(value_in(index)))
        if (name := text_of(row.get("name"))) and (status := _status(row)) in ("loaded", "loading")
    }
    return tuple(ModelFacts(name=name, status=status) for name, status in found.items())


def value_in(answer: Answer | None) -> object:
    """The JSON of an answer that was not refused, else None."""
    try:
        return orjson.loads(answer[1]) if is_ok(answer) else None
    except orjson.JSONDecodeError:
        return None


def object_in(answer: Answer | None) -> Mapping[str, Any]:
    """The JSON object of an answer, else an empty one."""
    return obj(value_in(answer))


def version_in(answer: Answer | None) -> str | None:
    """The version an answer names."""
    return text_of(object_in(answer).get("version"))


def is_ok(answer: Answer | None) -> TypeGuard[Answer]:
    """Whether there is an answer and it is no refusal."""
    return answer is not None and answer[0] == 200


def healthy(answer: Answer | None) -> bool | None:
    """None where there is no health route."""
    if answer is None or answer[0] in (401, 403, 404, 405):
        return None
    return answer[0] == 200


def _model(row: Mapping[str, Any]) -> ModelFacts | None:
    name = text_of(row.get("id")) or text_of(row.get("name"))
    if name is None:
        return None
    meta = obj(row.get("meta"))
    return ModelFacts(
        name=name,
        context_window=_first(row, _WINDOWS) or _first(meta, ("n_ctx", "n_ctx_train")),
        max_output_tokens=_first(row, _OUTPUTS),
        owner=text_of(row.get("owned_by")),
        quantisation=text_of(meta.get("ftype")) or _quantisation(row),
        status=_status(row),
    )


def _of_llamacpp(models: tuple[ModelFacts, ...], answers: Answers) -> tuple[ModelFacts, ...]:
    """It tells the window of one slot beside the model list; that is the one a prompt must fit.

    A router of several models tells each one's status; a server of one model has it loaded once it is healthy.
    """
    props = object_in(answers["/props"])
    window = number(obj(props.get("default_generation_settings")).get("n_ctx"))
    only: ModelStatus = "loading" if healthy(answers["/health"]) is False else "loaded"
    return tuple(
        replace(
            model,
            context_window=window or model.context_window,
            quantisation=model.quantisation or text_of(props.get("model_ftype")),
            status=model.status or only,
        )
        for model in models
    )


def _of_tgi(models: tuple[ModelFacts, ...], answers: Answers) -> tuple[ModelFacts, ...]:
    """It serves one model, and tells of it beside the list, which older ones do not have."""
    info = object_in(answers["/info"])
    name = text_of(info.get("model_id"))
    listed = models or ((ModelFacts(name=name),) if name else ())
    return tuple(
        replace(
            model,
            context_window=model.context_window or number(info.get("max_total_tokens")),
            quantisation=text_of(info.get("quantize")) or text_of(info.get("model_dtype")),
            status="loading" if healthy(answers["/health"]) is False else "loaded",
        )
        for model in listed
    )


def _of_ollama(models: tuple[ModelFacts, ...], answers: Answers) -> tuple[ModelFacts, ...]:
    """Those in memory come first; the window a model runs with counts more than the one it could have."""
    running = {row.get("name"): row for row in _rows(answers["/api/ps"])}
    kept = {row.get("name"): row for row in _rows(answers["/api/tags"])}
    told = is_ok(answers["/api/ps"])
    found = []
    for model in models:
        now = obj(running.get(model.name))
        absent: ModelStatus | None = "absent" if told else None
        found.append(
            replace(
                model,
                context_window=number(now.get("context_length")) or model.context_window,
                quantisation=_quantisation(now) or _quantisation(obj(kept.get(model.name))),
                status="loaded" if now else absent,
            )
        )
    return tuple(sorted(found, key=lambda model: model.status != "loaded"))


def _status(row: Mapping[str, Any]) -> ModelStatus | None:
    said = (
        text_of(obj(row.get("status")).get("value"))
        or text_of(row.get("status"))
        or text_of(row.get("state"))
    )
    return _STATUS.get((said or "").lower())


def _quantisation(row: Mapping[str, Any]) -> str | None:
    return text_of(obj(row.get("details")).get("quantization_level")) or text_of(row.get("quantization"))


def _rows(answer: Answer | None) -> list[Mapping[str, Any]]:
    body = object_in(answer)
    return [obj(row) for row in items(body.get("data")) or items(body.get("models"))]


def _first(row: Mapping[str, Any], names: tuple[str, ...]) -> int | None:
    return next((found for name in names if (found := number(row.get(name)))), None)
