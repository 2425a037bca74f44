"""What `tack bench history --ingest` has come ends as its generator says, with all that Tack would have written."""

import pytest
from django.db import connection

from tests.benchmarks.history_arrivals import LONGEST, Second, arrivals
from tests.benchmarks.history_data import make_history

pytestmark = pytest.mark.django_db

PAST, SECONDS, JOBS = 100, LONGEST + 1, 40
_OTHERWISE = {
    "jobs": """SELECT count(*) FROM bench_coming b LEFT JOIN scheduler_job j ON j.id = b.id
                WHERE b.second <= %s AND (j.state = b.state AND j.recorded_at IS NOT NULL) IS NOT true""",
    "runs": """SELECT count(*) FROM bench_life b LEFT JOIN scheduler_run r ON r.id = b.id
                WHERE b.second <= %s AND (r.state = b.state AND r.settled_at IS NOT NULL) IS NOT true""",
    "decisions": """SELECT count(*) FROM bench_life b LEFT JOIN scheduler_decision d ON d.run_id = b.id
                     WHERE b.second <= %s AND (b.state = 'failed') <> (d.run_id IS NOT NULL)""",
    "errors": """SELECT count(*) FROM bench_life b LEFT JOIN scheduler_runerror e ON e.run_id = b.id
                  WHERE b.second <= %s AND (b.state = 'failed') <> (e.run_id IS NOT NULL)""",
    "last failures": """SELECT count(*) FROM bench_coming b JOIN scheduler_job j ON j.id = b.id
                         WHERE b.second <= %s AND b.state = 'failed' AND j.last_category IS NULL""",
}
"""What would not be as it should, of the jobs that came until some second."""
_GAPS = """
    SELECT count(*) FROM scheduler_jobset s
     WHERE last_event <> (SELECT count(*) FROM scheduler_event e WHERE e.job_set_id = s.id AND e.number <= s.last_event)
"""


def test_jobs_that_come_end_as_they_were_meant_to() -> None:
    make_history(PAST)
    with arrivals(after=PAST, seconds=SECONDS, jobs=JOBS) as runs, connection.cursor() as cursor:
        write = Second()
        for second in range(SECONDS):
            write(second)
        found = {what: _number(statement, SECONDS - LONGEST) for what, statement in _OTHERWISE.items()}
        assert len(runs) == SECONDS
        assert found == dict.fromkeys(_OTHERWISE, 0)
        cursor.execute(_GAPS)
        assert cursor.fetchone() == (0,)


def _number(statement: str, second: int) -> int:
    with connection.cursor() as cursor:
        cursor.execute(statement, [second])
        (number,) = cursor.fetchone()
    return int(number)
