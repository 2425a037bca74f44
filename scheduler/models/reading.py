"""Tables of which thousands of rows are read at once."""

from collections.abc import Collection
from typing import Any, Self

from django.db import models
from django.db.models.base import ModelState
from django.db.models.fetch_modes import FetchMode


class ReadByTheThousand(models.Model):
    """Its rows are made from what was read as it is.

    Django's own way takes each field by itself and sends signals that nobody hears: for lists and exports that is
    longer than the database takes to find the rows.
    """

    class Meta:
        abstract = True

    @classmethod
    def from_db(
        cls,
        db: str | None,
        field_names: Collection[str],
        values: Collection[Any],
        *,
        fetch_mode: FetchMode | None = None,
    ) -> Self:
        """A row as it was read. Fields that were left out are not set, so that they are read when somebody asks."""
        row = cls.__new__(cls)
        row.__dict__.update(zip(field_names, values, strict=True))
        row._state = ModelState()
        row._state.adding = False
        row._state.db = db
        if fetch_mode is not None:
            row._state.fetch_mode = fetch_mode
        return row
