"""Constraints that say: this column holds one of these words."""

from collections.abc import Iterable

from django.db.models import CheckConstraint, Q


def one_of(name: str, field: str, words: Iterable[str]) -> CheckConstraint:
    """The column is one of the words, kept by the database."""
    return CheckConstraint(name=name, condition=Q(**{f"{field}__in": [str(word) for word in words]}))
