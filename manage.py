#!/usr/bin/env python
"""Django's command line for Tessera."""

import os
import sys

from app.common.told import command_run

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "app.settings.dev")
    command_run(sys.argv)
