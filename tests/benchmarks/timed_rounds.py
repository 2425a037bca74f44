"""Rounds of a pool in this process, timed by stage. Run inside a scratch Tack's Django; prints one line of JSON.

The stages are read and planned once beforehand, so each is measured alone; what a round takes beyond them is writing.
"""

import json
import sys
import time

from scheduler.configured import configuration
from scheduler.leasing import run_round
from scheduler.planning import plan
from scheduler.queries.pools import pool_snapshot

POOL = "default"


def main() -> None:
    """Make rounds until another would find nothing to do."""
    config = configuration()
    placed = rounds = 0
    reading = planning = whole = cpu = 0.0
    again = True
    while again:
        started = time.perf_counter()
        snapshot = pool_snapshot(POOL, config=config)
        read = time.perf_counter()
        assert snapshot is not None
        plan(snapshot.state)
        planned = time.perf_counter()
        busy = time.process_time()
        made = run_round(pool=POOL, config=config)
        ended, cpu = time.perf_counter(), cpu + time.process_time() - busy
        reading, planning, whole = (
            reading + read - started,
            planning + planned - read,
            whole + ended - planned,
        )
        placed, rounds, again = placed + made.placed, rounds + 1, made.again
    found = {
        "placed": placed,
        "rounds": rounds,
        "read": reading,
        "plan": planning,
        "whole": whole,
        "cpu": cpu,
    }
    sys.stdout.write(json.dumps(found) + "\n")
