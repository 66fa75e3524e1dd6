"""What a process counts of itself: bounded labels, and figures that follow from what happened."""

from app.common.meters import LagMeter, route_class


def test_paths_fall_into_few_classes() -> None:
    paths = ["/", "/api/v1/me/", "/admin/x/1/", "/static/a.css", "/healthz", "/c/0192", "/unknown/deep/path"]
    assert [route_class(path) for path in paths] == [
        "page",
        "api",
        "admin",
        "static",
        "healthz",
        "page",
        "page",
    ]


def test_the_worst_of_the_last_ten_seconds_is_shown() -> None:
    clock = iter([0.0, 0.0, 2.0, *(x for n in range(25) for x in (10.0 + n, 10.5 + n))])
    meter = LagMeter(clock=lambda: next(clock))
    meter.ask()
    assert meter.back() == 1.5
    late = []
    for _ in range(25):
        meter.ask()
        late.append(meter.back())
    assert (late[0], late[-1]) == (1.5, 0.0)
