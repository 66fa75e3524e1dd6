"""A backup as the handbook tells it: made beside the running product, restored into another place, verified."""

import json
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.e2e.live import Live, Stream, until
from tests.stack import command

pytestmark = [pytest.mark.e2e, pytest.mark.live(alone=True), pytest.mark.prove]

OUTSIDE = {"INFERENCE_URL": "http://127.0.0.1:9/v1", "EMBEDDING_URL": "http://127.0.0.1:9/v1"}
"""Nothing is asked of a model here, which saves the start of two servers."""
_COUNTED = """
SELECT (SELECT count(*) FROM retrieval_document), (SELECT count(*) FROM retrieval_chunk),
  (SELECT count(*) FROM chat_turn), (SELECT count(*) FROM chat_sentpassage),
  (SELECT count(*) FROM billing_ledgerentry), (SELECT sum(price) FROM billing_ledgerentry),
  (SELECT count(*) FROM accounts_user), (SELECT md5(string_agg(answer, '' ORDER BY id)) FROM chat_turn)
"""


@dataclass
class Place:
    """A data directory with services of its own."""

    data: Path

    def up(self, **env: str) -> None:
        done = command("up", "--services-only", "--detach", "--data", str(self.data), env=OUTSIDE | env)
        assert done.returncode == 0, done.stdout

    def run(self, *arguments: str) -> tuple[int, str]:
        done = command(*arguments, env={"TESSERA_DATA": str(self.data)})
        return done.returncode, done.stdout

    def counted(self) -> tuple[Any, ...]:
        url = json.loads((self.data / "env.json").read_text())["DATABASE_URL"]
        with psycopg.connect(url) as connection:
            found = connection.execute(_COUNTED).fetchone()
        assert found is not None
        return tuple(found)


@pytest.fixture
def place() -> Iterator[Callable[[str], Place]]:
    """Gives new data directories; what runs in them is taken down, and they are gone, at the end."""
    made: list[Place] = []

    def new(name: str) -> Place:
        # Not in pytest's own directory, which is closed to PostgreSQL's system user.
        made.append(Place(Path(tempfile.mkdtemp(prefix=f"tessera-{name}-"))))
        made[-1].data.chmod(0o755)
        return made[-1]

    yield new
    for one in made:
        command("down", "--data", str(one.data))
        shutil.rmtree(one.data, ignore_errors=True)


def verified(where: Place) -> dict[str, Any]:
    code, said = where.run("verify", "--json")
    assert code == 0, said
    found: dict[str, Any] = json.loads(said[said.index("{") :])
    return found


def test_what_one_data_directory_held_another_holds_and_others_refuse_it(
    live: Live, live_data: Path, place: Callable[[str], Place]
) -> None:
    handbook = live.sql("SELECT id FROM retrieval_collection WHERE name = 'Tessera handbook'")[0][0]
    query = "SELECT count(*) FROM retrieval_document WHERE status <> 'ready'"
    until(lambda: live.sql(query) == [(0,)], "the handbook is read", patience=300)
    wishes = {"collections": [str(handbook)], "max_output_tokens": 4}
    with live.ask(live.conversation(), "What is a reservation?", **wishes) as events:
        assert Stream(list(events)).names[-1] == "done"
    until(lambda: not live.held(), "nothing is held")
    old, folder = Place(live_data), place("backup").data / "friday"
    code, said = old.run("backup", str(folder))
    assert code == 0, said
    before = verified(old)
    assert before["citations"] > 0

    keys = json.loads((live_data / "secrets.json").read_text())["field_keys"]
    new = place("new")
    key_file = new.data.with_suffix(".keys")
    key_file.write_text(",".join(keys))
    try:
        new.up(FIELD_KEYS_FILE=str(key_file))
    finally:
        key_file.unlink()
    code, said = new.run("restore", str(folder))
    assert code == 0, said
    assert "Now run" in said
    assert new.counted() == old.counted()
    assert verified(new) == before

    code, said = new.run("restore", str(folder))
    assert (code, "The database is not empty" in said, "Traceback" in said) == (1, True, False), said
    assert new.counted() == old.counted()

    other = place("other")
    other.up()
    code, said = other.run("restore", str(folder))
    assert (code, "FIELD_KEYS" in said, "Traceback" in said) == (1, True, False), said
    assert not any(keys[0] in text for text in (said, (folder / "manifest.json").read_text()))
