"""How long questions about the history take in SQL, on a database of its own with a past of many jobs.

Every question is asked 42 times over one connection, for ten values in turn; the first two do not count.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from lookout.embedded import postgres

CHECKOUT = Path(__file__).resolve().parents[2]
SETTINGS = (
    "shared_buffers=1GB",
    "work_mem=64MB",
    "maintenance_work_mem=256MB",
    "max_wal_size=4GB",
    "checkpoint_timeout=30min",
)
"""Those the model's figures were taken with; writing them down is not measured here."""


def main(arguments: Sequence[str]) -> int:
    """Start PostgreSQL, fill it, ask, print. The exit code: 0 when every aim is met."""
    options = _parse(arguments)
    with tempfile.TemporaryDirectory(prefix="tack-history-", dir=options.folder or None) as name:
        folder = Path(name)
        server = postgres.cluster(folder, log=folder / "postgres.log", settings=SETTINGS)
        child = postgres.start(server)
        try:
            environment = {
                **os.environ,
                "DATABASE_URL": server.address.url,
                "DJANGO_SETTINGS_MODULE": "lookout.settings",
            }
            _run("manage.py", "migrate", "--verbosity", "0", "--skip-checks", environment=environment)
            return _run("-m", "tests.benchmarks.history_run", *_passed_on(options), environment=environment)
        finally:
            postgres.stop(child)


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="tack bench history", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--jobs", type=int, default=1_000_000, help="how long a past (%(default)s)")
    parser.add_argument(
        "--only", nargs="+", default=[], metavar="ID", help="ask these questions only, such as L3 X5"
    )
    parser.add_argument("--plans", action="store_true", help="print how the database answers each")
    parser.add_argument("--exports", action="store_true", help="export it all instead of asking questions")
    parser.add_argument(
        "--ingest",
        action="store_true",
        help="let 20,000 more runs come instead, with the indexes for these questions and then without them",
    )
    parser.add_argument(
        "--turns", type=int, default=1, help="of --ingest, each with and without (%(default)s)"
    )
    parser.add_argument("--folder", default="", help="where the database lies: about 4 GB for a million jobs")
    return parser.parse_args(arguments)


def _passed_on(options: argparse.Namespace) -> list[str]:
    only = ["--only", *options.only] if options.only else []
    flags = [f"--{name}" for name in ("plans", "exports", "ingest") if getattr(options, name)]
    return ["--jobs", str(options.jobs), "--turns", str(options.turns), *only, *flags]


def _run(*arguments: str, environment: dict[str, str]) -> int:
    return subprocess.run([sys.executable, *arguments], cwd=CHECKOUT, env=environment, check=False).returncode
