"""The package of decisions needs no framework."""

import subprocess
import sys
from pathlib import Path

import policies

PROGRAM = """
import importlib, pkgutil, sys
for name in ("django", "rest_framework", "celery", "psycopg", "httpx", "click", "rich", "scheduler", "lookout"):
    sys.modules[name] = None
import policies
for module in pkgutil.walk_packages(policies.__path__, "policies."):
    importlib.import_module(module.name)
print("imported")
"""


def test_every_module_of_policies_imports_where_django_cannot() -> None:
    root = Path(policies.__file__).parent.parent
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=root, capture_output=True, text=True, timeout=60, check=False
    )
    assert (run.stdout.strip(), run.stderr) == ("imported", "")
