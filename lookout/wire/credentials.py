"""Where Tack is and which token to show: from arguments, the environment, or the file that `tack up` writes.

The token of a file belongs to the address in that file and is never shown to another one.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from lookout.wire.errors import AddressInvalid, AddressUnknown, TokenFileUnreadable, TokenInvalid

_CHECKOUT = Path(__file__).resolve().parent.parent.parent


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """An address without a slash at its end, and a token, which may be empty. Raises TokenInvalid."""

    url: str
    token: str = ""

    def __post_init__(self) -> None:
        if not (self.token.isascii() and self.token.isprintable()):
            raise TokenInvalid


def find_credentials(
    *,
    url: str = "",
    token: str = "",
    token_file: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> Credentials:
    """Arguments win over TACK_URL and TACK_TOKEN, those over the file of `tack up` under TACK_VAR or ./var.

    Raises AddressUnknown, AddressInvalid and TokenFileUnreadable.
    """
    environment = os.environ if environment is None else environment
    kept = read_token_file(token_file) if token_file else _kept_by_up(environment)
    named = url or ("" if token_file else environment.get("TACK_URL", "")) or kept.url
    if not named:
        raise AddressUnknown
    address = tidy_address(named)
    belongs = not kept.url or tidy_address(kept.url) == address
    asked = token or ("" if token_file else environment.get("TACK_TOKEN", ""))
    return Credentials(url=address, token=asked or (kept.token if belongs else ""))


def read_token_file(path: Path) -> Credentials:
    """The two lines of a token file: address, token. A single line is a token for whatever address is named."""
    try:
        lines = [line.strip() for line in path.read_text().splitlines() if line.strip()]
    except OSError as error:
        raise TokenFileUnreadable(str(path), error.strerror or "it cannot be read") from error
    except UnicodeDecodeError as error:
        raise TokenFileUnreadable(str(path), "it is not text") from error
    if not 1 <= len(lines) <= 2:
        raise TokenFileUnreadable(str(path), f"it has {len(lines)} lines")
    return (
        Credentials(url=lines[0], token=lines[1]) if len(lines) == 2 else Credentials(url="", token=lines[0])
    )


def _kept_by_up(environment: Mapping[str, str]) -> Credentials:
    path = Path(environment.get("TACK_VAR") or _CHECKOUT / "var") / "token"
    # A var/ of root's is closed to others: for them there is no file, and the sentence says what to do.
    return read_token_file(path) if os.access(path, os.R_OK) else Credentials(url="")


def tidy_address(url: str) -> str:
    """The address without a slash at its end. Raises AddressInvalid."""
    try:
        parts = urlsplit(url.strip())
        is_good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError as error:
        raise AddressInvalid(url) from error
    if not is_good or parts.query or parts.fragment:
        raise AddressInvalid(url)
    return url.strip().rstrip("/")
