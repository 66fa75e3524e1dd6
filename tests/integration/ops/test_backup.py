"""A backup restored into another installation: equal to the row, refused where it must be, healed when killed."""

import hashlib
import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from cryptography.fernet import Fernet
from django.conf import settings as installed
from django.db import connection
from pytest_django import Settings

from app.accounts.models import Team, User
from app.audit.models import AuditEntry
from app.billing.services import bootstrap_defaults, price_set, reservation_hold, reservation_settle
from app.billing.types import Attempt, Buckets, Hold, Payer, Rate
from app.chat.models import SentPassage
from app.common.errors import Conflict, InvalidInput
from app.common.models import uuid7
from app.ops.backup import backup_blob, backup_make
from app.ops.manifest import DUMP, MANIFEST, UNFINISHED, WrongKey, manifest_read
from app.ops.pg_tools import program
from app.ops.restoring import restore
from app.ops.snapshot import connected, rows_counted
from app.ops.verifying import installation_verify
from retrieval.models import Document
from retrieval.storage import blob_remove
from tests.databases import database_beside
from tests.factories import (
    collection_make,
    conversation_make,
    document_ready_make,
    passage_make,
    turn_make,
)
from tests.services_plugin import seat
from tests.stack import REPOSITORY

committed = pytest.mark.django_db(transaction=True)
"""A dump sees only what was committed; emptying the tables afterwards costs seconds, so few tests do it."""
CITATIONS = 7


@dataclass(frozen=True)
class Elsewhere:
    """An installation without anything in it: an empty database and an empty folder."""

    url: str
    name: str
    originals: Path


@pytest.fixture
def house(settings: Settings, originals_dir: Path, user: User, team: Team) -> str:
    """An installation with documents, cited answers and a ledger; the address of its database."""
    test = urlsplit(installed.DATABASE_OWNER_URL)._replace(path=f"/test_tessera_{seat()}").geturl()
    settings.DATABASE_OWNER_URL = test
    collection = collection_make(team=team, user=user)
    turn = turn_make(conversation=conversation_make(user=user, team=team))
    for number in range(1, CITATIONS + 1):
        text = f"Fact {number} of the house stands on its second page."
        document = document_ready_make(collection=collection, pages=("The first page.", text))
        Document.objects.filter(pk=document.pk).update(serving_sha256=document.sha256)
        start = len("The first page.") + 2
        passage = passage_make(
            turn=turn, collection=collection, number=number, text=text, document_id=document.pk
        )
        SentPassage.objects.filter(pk=passage.pk).update(
            start=start, end=start + len(text), sha256=hashlib.sha256(text.encode()).hexdigest()
        )
    _book(user, team)
    return test


def _book(user: User, team: Team) -> None:
    bootstrap_defaults()
    rates = (Rate(component="input", price=Decimal("0.10")), Rate(component="output", price=Decimal("0.40")))
    price_set(price_key="chat/m", rates=rates, approved_by="tests")
    for _ in range(3):
        hold = Hold(
            reservation_id=uuid7(),
            payer=Payer(team_id=team.id, account_id=user.account_id),
            kind="chat",
            deployment_id=uuid7(),
            price_key="chat/m",
            input_tokens=1000,
            output_tokens=300,
        )
        reservation_hold(hold=hold)
        attempt = Attempt(buckets=Buckets(input=1000, output=10), requested_model="m")
        reservation_settle(reservation_id=hold.reservation_id, attempts=[attempt], hold=hold)


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[Elsewhere]:
    """Another database of the same server, made by the role that owns tables, and a folder that is not there yet."""
    name = f"test_restored_{seat()}"
    server = installed.DATABASE_OWNER_URL
    with database_beside(server, name):
        yield Elsewhere(urlsplit(server)._replace(path=f"/{name}").geturl(), name, tmp_path / "other")


@pytest.fixture
def move(settings: Settings, elsewhere: Elsewhere) -> Iterator[Callable[[], None]]:
    """Once called, the settings are those of the other installation."""
    before = connection.settings_dict["NAME"]

    def moved() -> None:
        settings.DATABASE_OWNER_URL = elsewhere.url
        settings.ORIGINALS_DIR = elsewhere.originals
        connection.close()
        connection.settings_dict["NAME"] = elsewhere.name

    yield moved
    if connection.settings_dict["NAME"] != before:
        connection.close()
        connection.settings_dict["NAME"] = before


@pytest.fixture
def made(house: str, tmp_path: Path) -> Path:
    folder = tmp_path / "backup"
    backup_make(folder)
    return folder


def rows_of(url: str) -> dict[str, int]:
    with connected(url) as at:
        return rows_counted(at)


@committed
def test_restored_elsewhere_everything_is_equal(
    house: str, made: Path, elsewhere: Elsewhere, move: Callable[[], None]
) -> None:
    _holds_no_key(made)
    before = installation_verify()
    rows = rows_of(house)
    assert (before.citations, before.opened, before.problems) == (CITATIONS, CITATIONS, ())
    # The backup notes itself only after the moment that it shows.
    assert AuditEntry.objects.filter(verb="backup").count() == 1
    rows["audit_auditentry"] -= 1
    move()
    manifest = restore(made)
    assert rows_of(elsewhere.url) == rows | {"audit_auditentry": rows["audit_auditentry"] + 1}
    assert installation_verify() == before
    assert AuditEntry.objects.first().object_id == manifest.id
    assert not (elsewhere.originals / ".restoring").exists()
    # The rights came along: the application may not change the ledger there either.
    with connected(elsewhere.url) as at:
        right = "SELECT has_table_privilege('tessera_app', 'billing_ledgerentry', %s)"
        assert [at.execute(right, [verb]).fetchone() for verb in ("INSERT", "UPDATE")] == [(True,), (False,)]
        # What the next migration makes is the application's to use, as before.
        at.execute("CREATE TABLE later (id int)")
        assert at.execute("SELECT has_table_privilege('tessera_app', 'later', 'UPDATE')").fetchone() == (
            True,
        )


def _holds_no_key(made: Path) -> None:
    plain = subprocess.run(
        [program("pg_restore"), "--file=-", str(made / DUMP)], capture_output=True, check=True
    ).stdout
    everything = plain + b"".join(path.read_bytes() for path in made.rglob("*") if path.is_file())
    assert b"billing_ledgerentry" in everything
    for key in installed.FIELD_KEYS:
        assert key.encode() not in everything
    assert {oct(p.stat().st_mode & 0o077) for p in made.rglob("*") if p.is_file()} == {"0o0"}


def _damage(made: Path, what: str) -> None:
    manifest = manifest_read(made)
    if what == "dump":
        with (made / DUMP).open("r+b") as file:
            file.seek(manifest.dump_size // 2)
            file.write(b"\0\1\2\3")
    elif what == "original":
        backup_blob(made, next(iter(manifest.originals))).write_bytes(b"another file")
    elif what == "manifest":
        facts = json.loads((made / MANIFEST).read_text())
        (made / MANIFEST).write_text(json.dumps(facts | {"ledger_price": "0"}))
    elif what == "half":
        (made / MANIFEST).unlink()
        (made / UNFINISHED).touch()
    else:
        (made / MANIFEST).unlink()


DAMAGES = {
    "dump": "is damaged",
    "original": "missing or damaged",
    "manifest": "was changed",
    "half": "broken off",
    "none": "holds no backup",
}


@committed
def test_what_is_refused_leaves_the_other_installation_empty(
    made: Path, settings: Settings, elsewhere: Elsewhere, tmp_path: Path, move: Callable[[], None]
) -> None:
    settings.ORIGINALS_DIR = tmp_path / "empty"
    with pytest.raises(Conflict, match="database is not empty"):
        restore(made)
    move()
    right = settings.FIELD_KEYS
    settings.FIELD_KEYS = [Fernet.generate_key().decode()]
    with pytest.raises(WrongKey, match="FIELD_KEYS do not open this backup"):
        restore(made)
    assert not elsewhere.originals.exists()
    settings.FIELD_KEYS = right
    for what, words in DAMAGES.items():
        copy = tmp_path / what
        shutil.copytree(made, copy)
        _damage(copy, what)
        settings.ORIGINALS_DIR = tmp_path / f"originals-{what}"
        with pytest.raises(InvalidInput, match=words):
            restore(copy)
    settings.ORIGINALS_DIR = elsewhere.originals
    elsewhere.originals.mkdir()
    (elsewhere.originals / "somebodys").write_text("file")
    with pytest.raises(Conflict, match="is not empty"):
        restore(made)
    assert rows_of(elsewhere.url) == {}
    (elsewhere.originals / "somebodys").unlink()
    # A key that was rotated since still opens it.
    settings.FIELD_KEYS = [Fernet.generate_key().decode(), *right]
    restore(made)


@committed
def test_what_lay_in_a_folder_comes_back_in_a_bucket_and_out_of_it_again(
    house: str,
    made: Path,
    elsewhere: Elsewhere,
    move: Callable[[], None],
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    before = installation_verify()
    move()
    request.getfixturevalue("bucket")
    restore(made)
    assert installation_verify() == before
    assert not [path for path in elsewhere.originals.rglob("*") if path.is_file()]
    again = backup_make(tmp_path / "again")
    assert again.originals == manifest_read(made).originals
    assert again.missing == ()


@committed
def test_a_folder_that_holds_something_is_left_alone_and_what_is_missing_is_named(
    made: Path, tmp_path: Path
) -> None:
    with pytest.raises(Conflict, match="a whole backup"):
        backup_make(made)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter.txt").write_text("Dear…")
    with pytest.raises(Conflict, match="not empty"):
        backup_make(tmp_path / "full")
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["letter.txt"]
    # An earlier backup saves room.
    second = backup_make(tmp_path / "second", like=made)
    for sha256 in second.originals:
        assert backup_blob(made, sha256).samefile(backup_blob(tmp_path / "second", sha256))
    lost = next(iter(second.originals))
    blob_remove(lost)
    assert backup_make(tmp_path / "third").missing == (lost,)
    assert any("is not there" in problem for problem in installation_verify().problems)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"text": "Other words."}, "does not have its hash"),
        ({"start": 0}, "another text"),
        ({"document_id": uuid7()}, "gone without a receipt"),
    ],
)
@pytest.mark.usefixtures("house")
def test_verify_sees_what_is_wrong_with_a_citation(change: dict[str, object], words: str) -> None:
    SentPassage.objects.filter(number=1).update(**change)
    (problem, *_) = installation_verify().problems
    assert words in problem


@pytest.mark.django_db
@pytest.mark.usefixtures("house")
def test_verify_sees_rights_that_nobody_should_have() -> None:
    with connection.cursor() as cursor:
        cursor.execute("GRANT UPDATE ON billing_ledgerentry TO tessera_app")
    assert any("may change billing_ledgerentry" in line for line in installation_verify().problems)


KILLED = """
import os, signal, sys
from pathlib import Path
import django
django.setup()
from django.conf import settings
from app.ops.backup import backup_make
from app.ops.restoring import restore
settings.DATABASE_OWNER_URL, settings.ORIGINALS_DIR = sys.argv[2], Path(sys.argv[3])
def say(line):
    if "originals" in line and sys.argv[1] == "backup" or "being restored" in line:
        os.kill(os.getpid(), signal.SIGKILL)
{"backup": backup_make, "restore": restore}[sys.argv[1]](Path(sys.argv[4]), say=say)
"""


def _kill(what: str, url: str, originals: Path, folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", KILLED, what, url, str(originals), str(folder)], cwd=REPOSITORY, check=False
    )
    assert done.returncode == -9


@committed
def test_killed_half_way_and_run_again(
    house: str, elsewhere: Elsewhere, originals_dir: Path, tmp_path: Path, move: Callable[[], None]
) -> None:
    folder = tmp_path / "killed"
    _kill("backup", house, originals_dir, folder)
    with pytest.raises(InvalidInput, match="broken off"):
        restore(folder)
    backup_make(folder)
    move()
    _kill("restore", elsewhere.url, elsewhere.originals, folder)
    assert (elsewhere.originals / ".restoring").exists()
    restore(folder)
    assert installation_verify().opened == CITATIONS
