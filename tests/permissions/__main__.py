"""Print the reference of permissions: `python -m tests.permissions > docs/reference/permissions.md`."""

import os
import sys

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "lookout.settings")
django.setup()

from tests.permissions.page import page_text  # noqa: E402  the factories it imports need Django

sys.stdout.write(page_text())
