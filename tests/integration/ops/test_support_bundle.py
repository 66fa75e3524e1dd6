"""The support bundle: useful to a stranger, and nothing in it that was planted to be found."""

import json
import tarfile
from pathlib import Path

import pytest
from django.conf import settings as installed
from django.core.management import call_command
from pytest_django import Settings

from app.accounts.models import Team, User
from app.audit.models import AuditEntry
from app.catalog.models import Backend
from tests.factories import (
    collection_make,
    conversation_make,
    document_ready_make,
    key_make,
    passage_make,
    turn_make,
)

PLANTED = "zanzibar-marmalade"


@pytest.mark.django_db
def test_it_helps_and_gives_nothing_away(
    tmp_path: Path, settings: Settings, originals_dir: Path, user: User, team: Team
) -> None:
    User.objects.filter(pk=user.pk).update(name=PLANTED, email=f"{PLANTED}@example.org")
    key = key_make(user=user, team=team)
    collection = collection_make(team=team, user=user, name=PLANTED)
    document_ready_make(collection=collection, pages=(PLANTED,))
    turn = turn_make(conversation=conversation_make(user=user, team=team, title=PLANTED), question=PLANTED)
    passage_make(turn=turn, collection=collection, text=PLANTED)
    server = Backend(name=f"{PLANTED} server", kind="vllm", base_url=f"https://{PLANTED}.example/v1")
    server.set_api_key(f"{PLANTED}-server-key")
    server.save()
    settings.DATA_DIR = tmp_path
    (tmp_path / "logs").mkdir()
    lines = [
        {
            "logger": "app.web",
            "level": "error",
            "message": f"The file '{PLANTED}' failed",
            "request_id": "r-17",
        },
        {"logger": "app.web", "message": f"Authorization: Bearer {key.plain} of {PLANTED}@example.org"},
        {"logger": "app.web", "message": f"postgresql://u:{PLANTED}@h/db with {installed.FIELD_KEYS[0]}"},
        {"logger": "app.web", "message": "x", "prompt": PLANTED, "data": {"text": PLANTED}},
        {
            "logger": "app.web",
            "message": "A mistake",
            "exception": f'Traceback\n  File "/srv/app/chat/turn.py", line 7, in close\n    x("{PLANTED}")\n'
            f"ValueError: {PLANTED}",
        },
    ]
    text = "\n".join(json.dumps(line) for line in lines)
    (tmp_path / "logs" / "web.log").write_text(f"{text}\n{PLANTED} in a line that is nobody's\n")
    target = tmp_path / "bundle.tar.gz"
    call_command("support_bundle", str(target), verbosity=0)
    with tarfile.open(target) as archive:
        parts = {m.name: archive.extractfile(m).read().decode() for m in archive.getmembers()}
    whole = "\n".join(parts.values())
    for word in (PLANTED, key.plain, installed.FIELD_KEYS[0], installed.SECRET_KEY):
        assert word not in whole
    log = parts["tessera-support/logs/web.log"]
    assert len(log.splitlines()) == len(lines)
    for useful in ("r-17", "app/chat/turn.py:7 close", "ValueError"):
        assert useful in log
    database = json.loads(parts["tessera-support/database.json"])
    assert "billing_ledgerentry" in database["tables"]
    assert json.loads(parts["tessera-support/settings.json"])["CURRENCY"] == "EUR"
    assert target.stat().st_mode & 0o077 == 0
    assert AuditEntry.objects.filter(verb="export", object_kind="support bundle").exists()
