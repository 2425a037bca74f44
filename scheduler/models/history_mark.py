"""Up to which moment the past has been worked through: added up, counted, removed."""

from datetime import UTC, datetime

from django.db import connection, models
from django.db.models import CheckConstraint, Q

BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)

# A moment is over once no transaction that began before it is open: each takes its times of recording from the clock,
# after it has begun and can be seen here. The clock is read first: what cannot be seen yet records later. Sessions that
# stand still within a transaction hold this up, and nothing else does.
_OVER = """
    SELECT least(statement_timestamp(), min(xact_start)) FROM pg_stat_activity
     WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()
"""


class HistoryMarkManager(models.Manager["HistoryMark"]):
    """Reads and takes the one row."""

    def take(self, *, waits: bool = False) -> "HistoryMark | None":
        """The mark, locked until the transaction ends; None while another works on the history, unless one waits."""
        self.bulk_create([HistoryMark()], ignore_conflicts=True)
        return self.select_for_update(skip_locked=not waits).first()

    def over_until(self) -> datetime:
        """Nothing will be recorded any more before this moment. What was is seen by the next statement."""
        with connection.cursor() as cursor:
            cursor.execute(_OVER)
            (moment,) = cursor.fetchone()
        assert isinstance(moment, datetime)
        return moment


class HistoryMark(models.Model):
    """How far the past has been worked through. One row; whoever adds up or deletes holds it."""

    id = models.PositiveSmallIntegerField(primary_key=True, default=1)
    closed_until = models.DateTimeField(default=BEGINNING)
    """A full hour: what was recorded before it is in the roll-ups."""
    counted_until = models.DateTimeField(default=BEGINNING)
    """Jobs whose end was recorded before it are in the totals."""
    jobs_until = models.DateTimeField(default=BEGINNING)
    """Of what was recorded before it runs and decisions may be gone, with their jobs; roll-ups still count them."""
    outputs_until = models.DateTimeField(default=BEGINNING)
    """Runs whose end was recorded before it have no output any more."""
    client_ids_until = models.DateTimeField(default=BEGINNING)
    """Jobs whose end was recorded before it have no client id any more, or are about to go with it."""

    objects = HistoryMarkManager()

    class Meta:
        constraints = [CheckConstraint(name="one_history_mark", condition=Q(id=1))]

    def __str__(self) -> str:
        return f"closed until {self.closed_until}"
