"""Whether the scheduler itself was there: silence that nobody could have heard is not held against executors."""

from django.db import connection, models

_LEAST_GAP_SECONDS = 2.0
"""The sweep comes every second; a busy machine may hold it up a little."""
_LOOK = """
    INSERT INTO scheduler_vigil AS kept (id, since, looked_at)
    VALUES (1, clock_timestamp(), clock_timestamp())
    ON CONFLICT (id) DO UPDATE
       SET since = CASE WHEN kept.looked_at < excluded.looked_at - make_interval(secs => %s) THEN excluded.since ELSE kept.since END,
           looked_at = greatest(kept.looked_at, excluded.looked_at)
 RETURNING looked_at - since > make_interval(secs => %s)
"""


class VigilManager(models.Manager["Vigil"]):
    """Kept by the sweep."""

    def has_lasted(self, *, seconds: float) -> bool:
        """Look now, and whether looks have come for so long without a gap that counts."""
        gap = max(_LEAST_GAP_SECONDS, seconds / 10)
        with connection.cursor() as cursor:
            cursor.execute(_LOOK, [gap, seconds])
            (has_lasted,) = cursor.fetchone()
        return bool(has_lasted)


class Vigil(models.Model):
    """Since when the sweep has looked without a gap. One row.

    While the database was down, the machine asleep or Tack stopped, no heartbeat could be recorded.
    """

    id = models.PositiveSmallIntegerField(primary_key=True, default=1)
    since = models.DateTimeField()
    looked_at = models.DateTimeField()

    objects = VigilManager()

    class Meta:
        constraints = [models.CheckConstraint(name="one_vigil", condition=models.Q(id=1))]

    def __str__(self) -> str:
        return f"looking since {self.since}"
