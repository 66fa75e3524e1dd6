"""Pages of every server, written as each writes them, give figures under one set of names."""

from typing import Any

import pytest

from inference_client.metrics import between, metrics_read

VLLM = """
# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="org/model a"} 3.0
vllm:num_requests_running{engine="1",model_name="org/model a"} 1.0
vllm:num_requests_waiting{engine="0",model_name="org/model a"} 7.0
vllm:kv_cache_usage_perc{engine="0",model_name="org/model a"} 0.25
vllm:kv_cache_usage_perc{engine="1",model_name="org/model a"} 0.75
vllm:prefix_cache_queries_total{engine="0"} 1000.0
vllm:prefix_cache_hits_total{engine="0"} 640.0
vllm:num_preemptions_total{engine="0"} 2.0
vllm:prompt_tokens_total{engine="0"} 5000.0
vllm:generation_tokens_total{engine="0"} 900.0
vllm:request_success_total{engine="0",finished_reason="stop"} 40.0
vllm:request_success_total{engine="0",finished_reason="length"} 10.0
vllm:time_to_first_token_seconds_bucket{engine="0",le="0.1"} 5.0
vllm:time_to_first_token_seconds_count{engine="0"} 50.0
vllm:time_to_first_token_seconds_sum{engine="0"} 10.0
vllm:inter_token_latency_seconds_count{engine="0"} 850.0
vllm:inter_token_latency_seconds_sum{engine="0"} 17.0
vllm:e2e_request_latency_seconds_count{engine="0"} 50.0
vllm:e2e_request_latency_seconds_sum{engine="0"} 150.0
vllm:request_queue_time_seconds_count{engine="0"} 50.0
vllm:request_queue_time_seconds_sum{engine="0"} 5.0
vllm:admission_rejections_total{reason="queue_full"} 4.0
"""
TGI = """
tgi_queue_size 4
tgi_batch_current_size 8
tgi_batch_current_max_tokens 16000
tgi_request_success{method="generate"} 20
tgi_request_failure{err="validation"} 1
tgi_request_failure{err="overloaded"} 2
tgi_request_queue_duration_sum 2.0
tgi_request_queue_duration_count 20
tgi_request_input_length_sum 4000
tgi_request_input_length_count 20
tgi_request_generated_tokens_sum 1000
tgi_request_generated_tokens_count 20
tgi_request_mean_time_per_token_duration_sum 0.6
tgi_request_mean_time_per_token_duration_count 20
tgi_request_duration_sum 50
tgi_request_duration_count 20
"""
TRITON = """
nv_inference_request_success{model="a",version="1"} 30.000000
nv_inference_request_success{model="b",version="1"} 10.000000
nv_inference_request_failure{model="a",reason="CANCELED",version="1"} 2
nv_inference_count{model="a",version="1"} 30
nv_inference_pending_request_count{model="a",version="1"} 5
nv_inference_queue_duration_us{model="a",version="1"} 8000000
nv_inference_first_response_histogram_ms_count{model="a",version="1"} 30
nv_inference_first_response_histogram_ms_sum{model="a",version="1"} 3000
nv_gpu_utilization{gpu_uuid="GPU-1"} 0.5
nv_gpu_utilization{gpu_uuid="GPU-2"} 1.0
nv_gpu_memory_used_bytes{gpu_uuid="GPU-1"} 1000
nv_gpu_memory_total_bytes{gpu_uuid="GPU-1"} 4000
nv_gpu_power_usage{gpu_uuid="GPU-1"} 120.5
nv_energy_consumption{gpu_uuid="GPU-1"} 98765.5
"""
LLAMACPP = """
# HELP llamacpp:prompt_tokens_total Number of prompt tokens processed.
llamacpp:prompt_tokens_total 700
llamacpp:prompt_tokens_cached_total 300
llamacpp:tokens_predicted_total 250
llamacpp:prompt_tokens_seconds 900.5
llamacpp:predicted_tokens_seconds 41.5
llamacpp:requests_processing 2
llamacpp:requests_deferred 1
llamacpp:n_busy_slots_per_decode 1.5
llamacpp:n_decode_total 240
"""
DCGM = """
DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-1",modelName="H 100"} 80
DCGM_FI_DEV_GPU_UTIL{gpu="1",UUID="GPU-2",modelName="H 100"} 40
DCGM_FI_PROF_GR_ENGINE_ACTIVE{gpu="0"} 0.9
DCGM_FI_PROF_PIPE_TENSOR_ACTIVE{gpu="0"} 0.35
DCGM_FI_PROF_DRAM_ACTIVE{gpu="0"} 0.6
DCGM_FI_DEV_FB_USED{gpu="0"} 10
DCGM_FI_DEV_FB_FREE{gpu="0"} 5
DCGM_FI_DEV_FB_RESERVED{gpu="0"} 1
DCGM_FI_DEV_POWER_USAGE{gpu="0"} 300.5
DCGM_FI_DEV_POWER_USAGE{gpu="1"} 99.5
DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{gpu="0"} 5000
DCGM_FI_DEV_GPU_TEMP{gpu="0"} 61
DCGM_FI_DEV_GPU_TEMP{gpu="1"} 70
DCGM_FI_DEV_XID_ERRORS{gpu="0"} 0
DCGM_FI_DEV_XID_ERRORS{gpu="1"} 79
"""
MIB = 1024 * 1024
WHOLE: list[tuple[str, str, dict[str, float]]] = [
    (
        "vllm",
        VLLM,
        {
            "running": 4, "waiting": 7, "kv_cache_share": 0.5, "input_tokens_total": 5000, "output_tokens_total": 900,
            "requests_total": 50, "failures_total": 4, "preemptions_total": 2, "prefix_hits_total": 640,
            "prefix_queries_total": 1000, "ttft_s": 0.2, "ttft_s_total": 10, "ttft_count_total": 50, "itl_s": 0.02,
            "itl_s_total": 17, "itl_count_total": 850, "queue_s": 0.1, "queue_s_total": 5, "queue_count_total": 50,
            "total_s": 3, "total_s_total": 150, "total_count_total": 50,
        },
    ),
    (
        "tgi",
        TGI,
        {
            "running": 8, "waiting": 4, "input_tokens_total": 4000, "output_tokens_total": 1000, "requests_total": 20,
            "failures_total": 3, "itl_s": 0.03, "itl_s_total": 0.6, "itl_count_total": 20, "queue_s": 0.1,
            "queue_s_total": 2, "queue_count_total": 20, "total_s": 2.5, "total_s_total": 50, "total_count_total": 20,
        },
    ),
    (
        "triton",
        TRITON,
        {
            "waiting": 5, "requests_total": 40, "failures_total": 2, "gpu_share": 0.75, "gpu_memory_used_bytes": 1000,
            "gpu_memory_bytes": 4000, "power_w": 120.5, "energy_j_total": 98765.5, "queue_s": 0.2, "queue_s_total": 8,
            "queue_count_total": 40, "ttft_s": 0.1, "ttft_s_total": 3, "ttft_count_total": 30,
        },
    ),
    (
        "llama.cpp",
        LLAMACPP,
        {
            "running": 2, "waiting": 1, "input_tokens_total": 1000, "output_tokens_total": 250,
            "output_tokens_per_s": 41.5, "prefix_hits_total": 300, "prefix_queries_total": 1000,
        },
    ),
    (
        "dcgm",
        DCGM,
        {
            "gpu_share": 0.6, "tensor_share": 0.35, "memory_bus_share": 0.6, "gpu_memory_used_bytes": 10 * MIB,
            "gpu_memory_bytes": 16 * MIB, "power_w": 400, "energy_j_total": 5, "temperature_c": 70, "gpu_error": 79,
        },
    ),
]  # fmt: skip


@pytest.mark.parametrize(("page", "expected"), [row[1:] for row in WHOLE], ids=[row[0] for row in WHOLE])
def test_a_whole_page(page: str, expected: dict[str, float]) -> None:
    assert metrics_read(page) == pytest.approx(expected)


def test_the_exporter_of_the_gpus_wins_where_both_are_there() -> None:
    joined = metrics_read(TRITON + DCGM)
    assert joined["gpu_share"] == pytest.approx(0.6)
    assert joined["energy_j_total"] == 5
    assert joined["waiting"] == 5


ODD: list[tuple[str, str, dict[str, float]]] = [
    ("empty", "", {}),
    ("comments", "# HELP vllm:num_requests_running x\n", {}),
    (
        "llama.cpp",
        "llamacpp:requests_processing 2\nllamacpp:requests_deferred 5\nllamacpp:prompt_tokens_total 1.5e3\n",
        {"running": 2, "waiting": 5, "input_tokens_total": 1500, "prefix_queries_total": 1500},
    ),
    (
        "labels with blanks and a time stamp",
        'vllm:num_requests_running{m="a {b} c"} 3 1700000000\n',
        {"running": 3},
    ),
    ("older name", "vllm:gpu_cache_usage_perc 0.5\n", {"kv_cache_share": 0.5}),
    (
        "newer name wins",
        "vllm:gpu_cache_usage_perc 0.5\nvllm:kv_cache_usage_perc 0.75\n",
        {"kv_cache_share": 0.75},
    ),
    (
        "several engines",
        "tgi_queue_size 1\ntgi_queue_size 2\nnv_gpu_utilization 0.5\nnv_gpu_utilization 1\n",
        {"waiting": 3, "gpu_share": 0.75},
    ),
    (
        "nothing measured yet",
        "tgi_request_duration_sum 0\ntgi_request_duration_count 0\n",
        {"total_s_total": 0, "total_count_total": 0},
    ),
    (
        "not numbers",
        "tgi_queue_size NaN\ntgi_batch_current_size +Inf\ntgi_queue_size\ntgi_queue_size x\n",
        {},
    ),
]


@pytest.mark.parametrize(("page", "expected"), [row[1:] for row in ODD], ids=[row[0] for row in ODD])
def test_odd_pages(page: str, expected: dict[str, Any]) -> None:
    assert metrics_read(page) == expected


def test_what_happened_lately() -> None:
    before = metrics_read(VLLM)
    after = before | {
        "output_tokens_total": 1500.0,
        "requests_total": 55.0,
        "ttft_s_total": 14.0,
        "ttft_count_total": 54.0,
    }
    lately = between(before, after, 10.0)
    assert (lately["output_tokens_per_s"], lately["requests_per_s"], lately["input_tokens_per_s"]) == (
        60,
        0.5,
        0,
    )
    # The mean of this stretch, not of the server's life; without a new value the old mean stays.
    assert (lately["ttft_s"], lately["queue_s"]) == (1.0, 0.1)
    assert "ttft_per_s" not in lately
    assert "ttft_count_per_s" not in lately
    assert lately["waiting"] == 7


def test_a_server_that_was_started_again_gives_no_rate() -> None:
    lately = between(
        {"output_tokens_total": 900.0}, {"output_tokens_total": 10.0, "requests_total": 1.0}, 5.0
    )
    assert lately == {"output_tokens_total": 10.0, "requests_total": 1.0}
    assert between({"requests_total": 1.0}, {"requests_total": 2.0}, 0.0) == {"requests_total": 2.0}
