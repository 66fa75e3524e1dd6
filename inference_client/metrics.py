"""Load figures of a server, from its Prometheus page, under one set of names. No IO.

running, waiting      requests
kv_cache_share        0 to 1
gpu_share             0 to 1
input_tokens_total, output_tokens_total   since the server started
"""

from collections.abc import Mapping

_NAMES: Mapping[str, tuple[str, ...]] = {
    "running": ("vllm:num_requests_running", "llamacpp:requests_processing", "tgi_batch_current_size"),
    "waiting": (
        "vllm:num_requests_waiting",
        "llamacpp:requests_deferred",
        "tgi_queue_size",
        "nv_inference_pending_request_count",
    ),
    "kv_cache_share": (
        "vllm:kv_cache_usage_perc",
        "vllm:gpu_cache_usage_perc",
        "llamacpp:kv_cache_usage_ratio",
    ),
    "gpu_share": ("nv_gpu_utilization",),
    "input_tokens_total": ("vllm:prompt_tokens_total", "llamacpp:prompt_tokens_total"),
    "output_tokens_total": ("vllm:generation_tokens_total", "llamacpp:tokens_predicted_total"),
}
_SHARES = ("kv_cache_share", "gpu_share")
_WANTED = {name for names in _NAMES.values() for name in names}


def metrics_read(page: str) -> dict[str, float]:
    """The figures found on a Prometheus `page`; what is not there is left out.

    Counts of several models or engines on one server are added, shares are averaged.
    """
    seen: dict[str, list[float]] = {}
    for line in page.splitlines():
        name = line.partition("{")[0].partition(" ")[0]
        if name in _WANTED:
            value = _value(line)
            if value is not None:
                seen.setdefault(name, []).append(value)
    result: dict[str, float] = {}
    for figure, names in _NAMES.items():
        values = next((seen[name] for name in names if name in seen), None)
        if values:
            result[figure] = sum(values) / (len(values) if figure in _SHARES else 1)
    return result


def _value(line: str) -> float | None:
    """The number behind the labels, which may hold blanks, and before a time stamp, which may be missing."""
    rest = line.rpartition("}")[2] if "}" in line else line.partition(" ")[2]
    try:
        value = float(rest.split()[0])
    except (ValueError, IndexError):
        return None
    return value if value == value and abs(value) != float("inf") else None  # noqa: PLR0124 - only NaN differs
