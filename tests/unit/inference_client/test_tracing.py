"""W3C trace context: what others began is carried on, what is no context begins anew."""

import pytest

from inference_client.tracing import Trace

ID, SPAN, OWN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7", "f" * 32
GOOD = f"00-{ID}-{SPAN}-01"


@pytest.mark.parametrize(
    ("parent", "state", "expected"),
    [
        (GOOD, "vendor=1", (ID, "01", "vendor=1")),
        (f"cc-{ID}-{SPAN}-01-later-versions-add", "", (ID, "01", "")),
        (GOOD, "x" * 513, (ID, "01", "")),
        (GOOD, "line\nbreak", (ID, "01", "")),
        ("", "vendor=1", (OWN, "00", "")),
        (f"ff-{ID}-{SPAN}-01", "", (OWN, "00", "")),
        (f"00-{'0' * 32}-{SPAN}-01", "", (OWN, "00", "")),
        (f"00-{ID}-{'0' * 16}-01", "", (OWN, "00", "")),
        (f"00-{ID.upper()}-{SPAN}-01", "", (OWN, "00", "")),
        ("nonsense", "", (OWN, "00", "")),
    ],
)
def test_reading(parent: str, state: str, expected: tuple[str, str, str]) -> None:
    trace = Trace.read({"traceparent": parent, "tracestate": state}, otherwise=OWN)
    assert (trace.trace_id, trace.flags, trace.state) == expected


def test_each_call_has_a_span_of_its_own_and_servers_elsewhere_see_no_state() -> None:
    trace = Trace.read({"traceparent": GOOD, "tracestate": "vendor=1"}, otherwise=OWN)
    first, second = trace.headers(), trace.headers()
    assert first["traceparent"].startswith(f"00-{ID}-")
    assert first["traceparent"].endswith("-01")
    assert len({first["traceparent"], second["traceparent"], GOOD}) == 3
    assert first["tracestate"] == "vendor=1"
    assert "tracestate" not in trace.without_state().headers()
