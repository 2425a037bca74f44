"""Pools of nodes, and the rounds that are made in them."""

import json
from typing import Any

from django.db import connection, models


class PoolManager(models.Manager["Pool"]):
    """The mark between rounds that meet."""

    def want_round(self, pool: str) -> None:
        """Ask whoever writes a round of the pool now for another one. Never waits for that round."""
        self.filter(name=pool).update(round_wanted=True)

    def take_wish(self, pool: str) -> bool:
        """Whether another round was asked for; the wish is taken away."""
        return self.filter(name=pool, round_wanted=True).update(round_wanted=False) > 0


class Pool(models.Model):
    """Nodes that share their queue of work."""

    name = models.CharField(max_length=63, primary_key=True)
    round_wanted = models.BooleanField(default=False)
    """Set by whoever found a round being written: its writer makes another. It lies here, not with the round,
    because a round's row is locked while it is written."""

    objects = PoolManager()

    def __str__(self) -> str:
        return self.name


_WRITE_ROUND = """
    INSERT INTO scheduler_poolround AS last
           (pool_id, number, ended_at, seconds, placed, unplaced, held, gangs, limited, rates)
    VALUES (%(pool)s, 1, clock_timestamp(), %(seconds)s, %(placed)s, %(unplaced)s, %(held)s, %(gangs)s, %(limited)s,
            %(rates)s)
    ON CONFLICT (pool_id) DO UPDATE
       SET number = last.number + 1, ended_at = excluded.ended_at, seconds = excluded.seconds,
           placed = excluded.placed, unplaced = excluded.unplaced, held = excluded.held, gangs = excluded.gangs, limited = excluded.limited, rates = excluded.rates
     WHERE last.number = %(seen)s
"""
ROUND_LOCK = 0x7ACC
"""The first half of the advisory lock of a round; the second is the pool."""


class PoolRoundManager(models.Manager["PoolRound"]):
    """Rounds take turns by these."""

    def try_lock(self, pool: str) -> bool:
        """Hold the pool until this transaction ends, unless somebody else holds it."""
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_try_advisory_xact_lock(%s, hashtext(%s))", [ROUND_LOCK, pool])
            (locked,) = cursor.fetchone()
        return bool(locked)

    def write(self, pool: str, *, seen: int, **fields: Any) -> bool:
        """Write the round after number `seen`. False, and nothing written, when another came in between."""
        values = {
            name: json.dumps(value) if isinstance(value, dict) else value for name, value in fields.items()
        }
        with connection.cursor() as cursor:
            cursor.execute(_WRITE_ROUND, {"pool": pool, "seen": seen, **values})
            return bool(cursor.rowcount == 1)


class PoolRound(models.Model):
    """The last round of a pool, and why jobs were not placed in it, per requirements key."""

    pool = models.OneToOneField(Pool, models.CASCADE, primary_key=True, related_name="last_round")
    number = models.PositiveBigIntegerField(default=0)
    """Counts the rounds that were written; a plan made before another round was written is dropped."""
    ended_at = models.DateTimeField(null=True)
    seconds = models.FloatField(default=0.0)
    placed = models.PositiveIntegerField(default=0)
    unplaced = models.JSONField(default=dict)
    """Requirements key → sentence."""
    held = models.JSONField(default=dict)
    """Queue → why none or no more of its jobs were looked at, in a sentence."""
    gangs = models.JSONField(default=dict)
    """Queue → gang → why it did not start, in a sentence."""
    limited = models.JSONField(default=dict)
    """Queue → priority class → the limit its jobs met, in a sentence."""
    rates = models.JSONField(default=dict)
    """Rate limits that are not at rest: name of a queue, or empty for the pool → `[tokens, time]`."""

    objects = PoolRoundManager()

    def __str__(self) -> str:
        return f"round of {self.pool_id}"
