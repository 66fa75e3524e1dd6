"""The first collection of every installation: its name, and where its pages lie."""

from pathlib import Path

from django.conf import settings

HANDBOOK = "Tessera handbook"
HANDBOOK_DIR = Path(settings.BASE_DIR) / "docs" / "handbook"
