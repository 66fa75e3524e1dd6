import subprocess
import sys

import pytest

from app.embedded.background import background
from app.embedded.errors import WeightsUnavailable
from tests.services_plugin import REPOSITORY


def test_the_value_comes_with_the_future() -> None:
    assert background(lambda: 6 * 7).result(10) == 42


@pytest.mark.parametrize("raised", [WeightsUnavailable("no network"), KeyError("x"), SystemExit(3)])
def test_whatever_is_raised_reaches_whoever_asks(raised: BaseException) -> None:
    def fail() -> None:
        raise raised

    assert background(fail).exception(10) is raised


def test_an_unfinished_step_does_not_keep_the_process() -> None:
    code = "import time; from app.embedded.background import background; background(lambda: time.sleep(600))"
    assert (
        subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, timeout=60, check=False).returncode == 0
    )
