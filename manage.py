#!/usr/bin/env python
"""Commands of the server, Tack's and Django's own: `./tack manage migrate`, `./tack person`, `./tack token`."""

import os
import sys

from django.core.management import execute_from_command_line

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "lookout.settings")
    execute_from_command_line(["tack manage", *sys.argv[1:]])  # how help names it
