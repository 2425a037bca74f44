"""Annotations of jobs once more, each by its value: what jobs are found by without a look at all of them."""

from django.db import models

LONGEST_VALUE = 200
"""Characters of a value that stand here; whoever looks for a longer one asks the jobs that begin alike as well."""


class JobAnnotation(models.Model):
    """That a job has a value under a key. Kept by the database itself, with the job: no verb can forget it."""

    pk = models.CompositePrimaryKey("key", "value", "job_submitted_at", "job_id")
    """Is the index of jobs with an annotation, in their order (L7, L8)."""
    key = models.CharField(max_length=317, db_collation="C")
    value = models.CharField(max_length=LONGEST_VALUE, db_collation="C")
    """The beginning of it."""
    job_submitted_at = models.DateTimeField()
    job = models.ForeignKey(
        "scheduler.Job", models.DO_NOTHING, related_name="+", db_index=False, db_constraint=False
    )

    def __str__(self) -> str:
        return f"{self.key}={self.value} of {self.job_id}"
