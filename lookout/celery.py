"""The Celery app: a message only says "look at your rows"; PostgreSQL keeps what is true.

Every task is short, safe to run twice and safe to lose, so the broker may forget everything it holds: the sweep,
once a second, finds what the lost messages were about.
"""

import os
from pathlib import Path
from typing import Any

from celery import Celery
from celery.signals import worker_init, worker_process_init, worker_ready

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "lookout.settings")

from django.conf import settings

from lookout.embedded.children import end_with_parent
from scheduler.config import ConfigurationInvalid
from scheduler.configured import check_at_start

SWEEP_SECONDS = 1.0
REMOVE_SECONDS = 60.0
ADD_UP_SECONDS = 10.0
"""What ended since then is counted whenever unfiltered groups are read."""

app = Celery("tack", broker=settings.BROKER_URL)
app.conf.update(
    task_default_queue="decide",
    task_ignore_result=True,
    # A task that died with its worker is delivered again; one more look at the rows does no harm.
    task_acks_late=True,
    task_reject_on_worker_lost=True,
    worker_prefetch_multiplier=1,
    # A bell must never delay the page or verb that rings it: fail at once, the sweep makes up for it.
    task_publish_retry=False,
    broker_connection_timeout=0.5,
    broker_transport_options={
        "socket_timeout": 0.5,
        "socket_connect_timeout": 0.5,
        "max_retries": 0,
        # Longer than the longest task (5 s). kombu looks for lost messages every interval x throttle seconds.
        "visibility_timeout": 60,
        "unacked_restore_throttle": 1,
    },
    broker_connection_retry_on_startup=True,
    broker_connection_max_retries=None,
    # No soft limit: its exception would surface in the middle of a batch and be blamed on a run of it.
    task_time_limit=40,
    worker_hijack_root_logger=False,
    worker_send_task_events=False,
    timezone="UTC",
    beat_schedule={
        # Expires before its next turn: after a pause there is one sweep to do, not a backlog of them.
        "sweep": {
            "task": "scheduler.tasks.sweep",
            "schedule": SWEEP_SECONDS,
            "options": {"expires": SWEEP_SECONDS},
        },
        "add up": {
            "task": "scheduler.tasks.add_up",
            "schedule": ADD_UP_SECONDS,
            "options": {"expires": ADD_UP_SECONDS},
        },
        "remove old": {
            "task": "scheduler.tasks.remove_old",
            "schedule": REMOVE_SECONDS,
            "options": {"expires": REMOVE_SECONDS},
        },
    },
)
app.autodiscover_tasks(["scheduler"])


@worker_init.connect
def refuse_what_contradicts_itself(**_: Any) -> None:
    """A worker whose configuration cannot be used does not start, and says why."""
    try:
        check_at_start()
    except ConfigurationInvalid as error:
        raise SystemExit(str(error)) from error


@worker_ready.connect
def tell_the_supervisor(**_: Any) -> None:
    """Touch the file named by TACK_READY_FILE once the worker takes tasks."""
    if path := os.environ.get("TACK_READY_FILE"):
        Path(path).touch()


@worker_process_init.connect
def leave_with_the_worker(**_: Any) -> None:
    """A pool process does not outlive its worker, even one that was killed: its tasks are another's by then."""
    end_with_parent(os.getppid())
