"""The reference of permissions says what the table says."""

from scheduler.actors import Permission
from tests.permissions.matrix import ROWS, Who
from tests.permissions.page import _ALLOWS, FILE, page_text


def test_the_page_is_written_from_the_table() -> None:
    written = FILE.read_text(encoding="utf-8")
    assert written == page_text(), (
        "Write it again: python -m tests.permissions > docs/reference/permissions.md"
    )


def test_members_of_an_owning_group_may_what_an_owner_may() -> None:
    assert all((Who.OWNER in row.who) is (Who.GROUP in row.who) for row in ROWS)


def test_every_permission_is_told() -> None:
    assert set(_ALLOWS) == set(Permission)
