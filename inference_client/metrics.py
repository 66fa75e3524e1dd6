"""Load figures of a server, from its Prometheus page, under one set of names. No IO.

running, waiting                 requests
kv_cache_share, gpu_share, tensor_share, memory_bus_share   0 to 1; the KV cache fills up first, so look at it first
output_tokens_per_s              as the server says it; see `between` for what it was lately
gpu_memory_used_bytes, gpu_memory_bytes, power_w, temperature_c, gpu_error (the driver's last code, 0 is none)
…_total                          since the server started: input_tokens, output_tokens, requests, failures,
                                 preemptions, prefix_hits, prefix_queries (tokens), energy_j
ttft_s, itl_s, queue_s, total_s  means since the server started, with ttft_s_total and ttft_count_total behind them
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

Names: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Figure:
    """Where a figure is found: the first name that is on the page counts."""

    names: Names
    fold: Literal["sum", "mean", "max"] = "sum"
    """How the values of several models, engines or GPUs become one."""
    factor: float = 1.0
    plus: Names = ()
    """Further names whose values are added."""


_MIB = 1024.0 * 1024.0
_FIGURES: Mapping[str, Figure] = {
    "running": Figure(
        ("vllm:num_requests_running", "llamacpp:requests_processing", "tgi_batch_current_size")
    ),
    "waiting": Figure(
        (
            "vllm:num_requests_waiting",
            "llamacpp:requests_deferred",
            "tgi_queue_size",
            "nv_inference_pending_request_count",
        )
    ),
    "kv_cache_share": Figure(
        # vLLM renamed it; llama.cpp has dropped it.
        ("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc", "llamacpp:kv_cache_usage_ratio"),
        "mean",
    ),
    "output_tokens_per_s": Figure(("llamacpp:predicted_tokens_seconds",)),
    "input_tokens_total": Figure(
        ("vllm:prompt_tokens_total", "llamacpp:prompt_tokens_total", "tgi_request_input_length_sum"),
        # llama.cpp counts what came from its cache apart.
        plus=("llamacpp:prompt_tokens_cached_total",),
    ),
    "output_tokens_total": Figure(
        (
            "vllm:generation_tokens_total",
            "llamacpp:tokens_predicted_total",
            "tgi_request_generated_tokens_sum",
        )
    ),
    "requests_total": Figure(
        ("vllm:request_success_total", "tgi_request_success", "nv_inference_request_success")
    ),
    "failures_total": Figure(
        ("vllm:admission_rejections_total", "tgi_request_failure", "nv_inference_request_failure")
    ),
    "preemptions_total": Figure(("vllm:num_preemptions_total",)),
    "prefix_hits_total": Figure(("vllm:prefix_cache_hits_total", "llamacpp:prompt_tokens_cached_total")),
    "prefix_queries_total": Figure(
        ("vllm:prefix_cache_queries_total", "llamacpp:prompt_tokens_total"),
        plus=("llamacpp:prompt_tokens_cached_total",),
    ),
    "gpu_share": Figure(("nv_gpu_utilization",), "mean"),
    "tensor_share": Figure(("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE",), "mean"),
    "memory_bus_share": Figure(("DCGM_FI_PROF_DRAM_ACTIVE",), "mean"),
    "gpu_memory_used_bytes": Figure(("nv_gpu_memory_used_bytes",)),
    "gpu_memory_bytes": Figure(("nv_gpu_memory_total_bytes",)),
    "power_w": Figure(("DCGM_FI_DEV_POWER_USAGE", "nv_gpu_power_usage")),
    "energy_j_total": Figure(("nv_energy_consumption",)),
    "temperature_c": Figure(("DCGM_FI_DEV_GPU_TEMP",), "max"),
    "gpu_error": Figure(("DCGM_FI_DEV_XID_ERRORS",), "max"),
}
_DCGM: Mapping[str, Figure] = {
    "gpu_share": Figure(("DCGM_FI_DEV_GPU_UTIL",), "mean", 0.01),
    "gpu_memory_used_bytes": Figure(("DCGM_FI_DEV_FB_USED",), factor=_MIB),
    "gpu_memory_bytes": Figure(
        ("DCGM_FI_DEV_FB_USED",), factor=_MIB, plus=("DCGM_FI_DEV_FB_FREE", "DCGM_FI_DEV_FB_RESERVED")
    ),
    "energy_j_total": Figure(("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION",), factor=0.001),
}
"""The same figures in DCGM's units, which win where a page has both."""
_TIMES: Mapping[str, tuple[tuple[str, str, float], ...]] = {
    "ttft": (
        ("vllm:time_to_first_token_seconds_sum", "vllm:time_to_first_token_seconds_count", 1.0),
        (
            "nv_inference_first_response_histogram_ms_sum",
            "nv_inference_first_response_histogram_ms_count",
            0.001,
        ),
    ),
    "itl": (
        ("vllm:inter_token_latency_seconds_sum", "vllm:inter_token_latency_seconds_count", 1.0),
        ("vllm:time_per_output_token_seconds_sum", "vllm:time_per_output_token_seconds_count", 1.0),
        (
            "tgi_request_mean_time_per_token_duration_sum",
            "tgi_request_mean_time_per_token_duration_count",
            1.0,
        ),
    ),
    "queue": (
        ("vllm:request_queue_time_seconds_sum", "vllm:request_queue_time_seconds_count", 1.0),
        ("tgi_request_queue_duration_sum", "tgi_request_queue_duration_count", 1.0),
        ("nv_inference_queue_duration_us", "nv_inference_request_success", 0.000001),
    ),
    "total": (
        ("vllm:e2e_request_latency_seconds_sum", "vllm:e2e_request_latency_seconds_count", 1.0),
        ("tgi_request_duration_sum", "tgi_request_duration_count", 1.0),
    ),
}
"""Time by stage: (sum of it, how many, seconds in one unit)."""
_TABLES = (_FIGURES, _DCGM)
_WANTED = frozenset(
    [name for table in _TABLES for figure in table.values() for name in (*figure.names, *figure.plus)]
    + [name for rows in _TIMES.values() for total, count, _ in rows for name in (total, count)]
)


def metrics_read(page: str) -> dict[str, float]:
    """The figures found on a Prometheus `page`; what is not there is left out.

    Pages of several servers, or of a server and its GPUs, may be joined.
    """
    seen = _seen(page)
    result: dict[str, float] = {}
    for table in _TABLES:
        for name, figure in table.items():
            if (value := _figure(figure, seen)) is not None:
                result[name] = value
    for stage, rows in _TIMES.items():
        for total_name, count_name, unit in rows:
            if total_name in seen and count_name in seen:
                total, count = sum(seen[total_name]) * unit, sum(seen[count_name])
                result |= {f"{stage}_s_total": total, f"{stage}_count_total": count}
                if count:
                    result[f"{stage}_s"] = total / count
                break
    return result


def between(before: Mapping[str, float], after: Mapping[str, float], seconds: float) -> dict[str, float]:
    """`after`, with what happened in the `seconds` since `before`.

    Every `x_total` that has grown gives `x_per_s`, and the means of times become those of this stretch. A total
    that shrank tells that the server was started again, and gives nothing.
    """
    result = dict(after)
    grown = {
        name.removesuffix("_total"): value - before[name]
        for name, value in after.items()
        if name.endswith("_total") and name in before and value >= before[name]
    }
    if seconds > 0:
        result |= {
            f"{name}_per_s": value / seconds
            for name, value in grown.items()
            if not name.endswith(("_s", "_count"))
        }
    for stage in _TIMES:
        if grown.get(f"{stage}_count"):
            result[f"{stage}_s"] = grown.get(f"{stage}_s", 0.0) / grown[f"{stage}_count"]
    return result


def _figure(figure: Figure, seen: Mapping[str, list[float]]) -> float | None:
    values = next((seen[name] for name in figure.names if name in seen), None)
    if values is None:
        return None
    extra = sum(sum(seen[name]) for name in figure.plus if name in seen)
    return (_folded(values, figure.fold) + extra) * figure.factor


def _folded(values: list[float], fold: str) -> float:
    if fold == "max":
        return max(values)
    return sum(values) / (len(values) if fold == "mean" else 1)


def _seen(page: str) -> dict[str, list[float]]:
    seen: dict[str, list[float]] = {}
    for name, value in _samples(page.splitlines()):
        seen.setdefault(name, []).append(value)
    return seen


def _samples(lines: Iterable[str]) -> Iterable[tuple[str, float]]:
    for line in lines:
        name = line.partition("{")[0].partition(" ")[0]
        if name in _WANTED and (value := _value(line)) is not None:
            yield name, value


def _value(line: str) -> float | None:
    """The number behind the labels, which may hold blanks, and before a time stamp, which may be missing."""
    rest = line.rpartition("}")[2] if "}" in line else line.partition(" ")[2]
    try:
        value = float(rest.split()[0])
    except (ValueError, IndexError):
        return None
    return value if value == value and abs(value) != float("inf") else None  # noqa: PLR0124 - only NaN differs
