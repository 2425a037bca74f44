"""Names as parts of an address."""

from urllib.parse import quote

from lookout.wire.connection import NO_TEXT
from lookout.wire.errors import Unsendable


def segment(name: str) -> str:
    """A name as one part of a path. Raises Unsendable for what cannot be one."""
    if name in ("", ".", ".."):
        raise Unsendable(f"{name!r} is no name")
    try:
        return quote(name, safe="")
    except UnicodeEncodeError as error:
        raise Unsendable(NO_TEXT) from error
