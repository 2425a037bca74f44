"""Whether jobs could run on some node of an idle fleet, from a snapshot that batches of settling share."""

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from enum import StrEnum

from django.db import transaction

from scheduler.config import Configuration
from scheduler.models import Executor
from scheduler.placement import NodeCapacity, Requirements, obstacle_to
from scheduler.queries.fleet import fleet_nodes, heard_of

ANSWER_SECONDS = 1.0
"""What has no answer by then counts as no fit: a thousand times what a large fleet takes."""
NODES_BETWEEN_LOOKS = 1_000
"""Nodes asked between two looks at the clock."""
ANSWERS_KEPT = 10_000

type Stamp = Sequence[tuple[str, datetime | None, Sequence[str]]]
"""The executors heard of, when what each says of its nodes last changed, and the fields it honours."""

log = logging.getLogger(__name__)


class Answer(StrEnum):
    """What a check comes to."""

    FITS = "fits"
    NO_FIT = "no_fit"
    NO_ANSWER = "no_answer"
    """None in time; to be taken for no fit."""
    ERROR = "error"
    """The check itself failed, and says nothing about the job."""


class FleetCheck:
    """The fleet's total capacity, cordoned nodes included, as it was when an executor last told of a change.

    A process keeps one for all its batches. Each check looks for a change in one small query; only then are the
    nodes read again. Equal requirements are answered once for as long as nothing changes.
    """

    def __init__(
        self, *, answer_seconds: float = ANSWER_SECONDS, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._answer_seconds = answer_seconds
        self._clock = clock
        self._stamp: Stamp | None = None
        self._nodes: list[NodeCapacity] = []
        self._answers: dict[Requirements, Answer] = {}

    def ask(self, wanted: Iterable[Requirements], *, config: Configuration) -> dict[Requirements, Answer]:
        """An answer for each. Never raises: what goes wrong is an answer, too.

        Where no node is known yet everything fits: it waits for one to be heard of.
        """
        asked = dict.fromkeys(wanted)
        try:
            with transaction.atomic():  # what fails here must not fail what asked
                self._refresh(config)
        except Exception:
            log.exception("the fleet could not be looked at, and nothing is known of what fits")
            return dict.fromkeys(asked, Answer.ERROR)
        return {each: self._answer(each, config) for each in asked}

    def _refresh(self, config: Configuration) -> None:
        heard = Executor.objects.filter(heard_of(config)).order_by("name")
        stamp = list(heard.values_list("name", "nodes_changed_at", "honours"))
        if stamp == self._stamp and len(self._answers) < ANSWERS_KEPT:
            return
        self._answers = {}
        if stamp != self._stamp:
            # The largest first: what fits anywhere is found soon.
            self._nodes = sorted(fleet_nodes(config=config), key=lambda node: -node.memory_bytes)
            self._stamp = stamp

    def _answer(self, wanted: Requirements, config: Configuration) -> Answer:
        if wanted in self._answers:
            return self._answers[wanted]
        try:
            found = self._look(wanted, config)
        except Exception:
            log.exception("whether a job fits could not be told")
            return Answer.ERROR
        if found is not Answer.NO_ANSWER:
            self._answers[wanted] = found
        return found

    def _look(self, wanted: Requirements, config: Configuration) -> Answer:
        until = self._clock() + self._answer_seconds
        for turn, node in enumerate(self._nodes):
            if turn % NODES_BETWEEN_LOOKS == 0 and self._clock() > until:
                return Answer.NO_ANSWER
            if _could_run(wanted, node, config):
                return Answer.FITS
        return Answer.NO_FIT if self._nodes else Answer.FITS


def _could_run(wanted: Requirements, node: NodeCapacity, config: Configuration) -> bool:
    obstacle = obstacle_to(
        wanted,
        node,
        node_id_label=config.node_id_label,
        cpu_millicores=node.cpu_millicores,
        memory_bytes=node.memory_bytes,
        resources=node.resources,
    )
    return obstacle is None
