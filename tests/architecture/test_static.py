"""Scripts are served under names that carry their hash, whoever imports them."""

from app.common.storage import _OURS
from tests.stack import REPOSITORY


def test_imports_are_rewritten_wherever_there_are_scripts_of_ours() -> None:
    roots = [*REPOSITORY.glob("app/*/static"), *REPOSITORY.glob("retrieval/static")]
    found = {script.relative_to(root).parts[0] for root in roots for script in root.rglob("*.js")}
    assert "chat" in found
    assert found <= set(_OURS)
