"""Bells that have been rung and not answered: a message that waits in the broker need not be sent again."""

from django.db import connection, models

# Losing a bell to a crash of the database costs the second until the next sweep: nobody waits for the disk.
_UNSYNCED = "set_config('synchronous_commit', 'off', true) IS NOT NULL"
_RING = f"""
    WITH rung AS (
        UPDATE scheduler_bell SET waits = true WHERE name = %(name)s AND NOT waits AND {_UNSYNCED} RETURNING 1
    ), made AS (
        INSERT INTO scheduler_bell (name, waits)
        SELECT %(name)s, true WHERE NOT EXISTS (SELECT FROM scheduler_bell WHERE name = %(name)s)
            ON CONFLICT DO NOTHING RETURNING 1
    )
    SELECT EXISTS (SELECT FROM rung) OR EXISTS (SELECT FROM made)
"""  # noqa: S608 - a constant
_ANSWER = f"UPDATE scheduler_bell SET waits = false WHERE name = %s AND waits AND {_UNSYNCED}"  # noqa: S608


class BellManager(models.Manager["Bell"]):
    """Rings and answers. Never from within a transaction that goes on: what was rung for must be visible."""

    def ring(self, name: str) -> bool:
        """Whether a message is to be sent; not when one waits that nobody has answered.

        Called after the commit of what it rings for. Whoever answers later looks later still, and sees that.
        """
        with connection.cursor() as cursor:
            cursor.execute(_RING, {"name": name})
            (unanswered,) = cursor.fetchone()
        return bool(unanswered)

    def answer(self, name: str) -> None:
        """Say that somebody is about to look: who rings from now on has to be heard. Called before the look."""
        with connection.cursor() as cursor:
            cursor.execute(_ANSWER, [name])


class Bell(models.Model):
    """One kind of bell."""

    name = models.CharField(max_length=32, primary_key=True)
    waits = models.BooleanField(default=False)
    """It was rung, and nobody has looked since. When its message is lost, the next sweep looks."""

    objects = BellManager()

    def __str__(self) -> str:
        return self.name
