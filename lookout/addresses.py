"""Addresses of databases in the form of a URL, and back: `postgresql://user:password@host:port/name?host=/socket`."""

from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlencode, urlsplit


class AddressInvalid(ValueError):
    """The address of the database cannot be read. Write it as postgresql://user:password@host:port/name."""

    def __init__(self, problem: str) -> None:
        super().__init__(f"{problem} Write DATABASE_URL as postgresql://user:password@host:port/name.")


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseAddress:
    """Where a PostgreSQL database is. `host` is a name, an address or the folder of a unix socket."""

    name: str
    user: str = ""
    password: str = ""
    host: str = ""
    port: str = ""
    options: tuple[tuple[str, str], ...] = ()

    @property
    def url(self) -> str:
        login = quote(self.user, safe="") + (f":{quote(self.password, safe='')}" if self.password else "")
        place = "" if self.host.startswith("/") else self.host
        query = dict(self.options) | ({"host": self.host} if self.host.startswith("/") else {})
        return (
            f"postgresql://{login + '@' if login else ''}{place}{':' + self.port if self.port else ''}"
            f"/{quote(self.name, safe='')}{'?' + urlencode(query) if query else ''}"
        )

    def for_django(self, *, pool_size: int = 0, statement_seconds: int = 0) -> dict[str, Any]:
        """One entry of Django's DATABASES.

        `pool_size` 0 means one connection per thread, opened when needed; `statement_seconds` is how long one
        statement may take, and a transaction may do nothing, 0 for any length.
        """
        options: dict[str, Any] = dict(self.options)
        limits = ("statement_timeout", "idle_in_transaction_session_timeout") if statement_seconds else ()
        given = [*_PLANNING, *(f"-c {limit}={statement_seconds}s" for limit in limits)]
        options["options"] = " ".join([*given, *filter(None, [options.get("options")])])
        if pool_size:
            options["pool"] = {"min_size": 1, "max_size": pool_size, "timeout": 10}
        return {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": self.name,
            "USER": self.user,
            "PASSWORD": self.password,
            "HOST": self.host,
            "PORT": self.port,
            "CONN_MAX_AGE": 0,
            "OPTIONS": options,
        }


_PLANNING = ("-c random_page_cost=1.1", "-c jit=off")
"""Pages are in memory or on a disk without arms, so that looking many rows up costs little more than reading on;
and no question here is so long that compiling it pays. What the address itself says comes later and holds."""


def parse_database_url(url: str) -> DatabaseAddress:
    """Read a PostgreSQL address. Raises AddressInvalid with what is wrong."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise AddressInvalid(f"The address cannot be read: {error}.") from error
    if parts.scheme not in ("postgresql", "postgres"):
        raise AddressInvalid(
            f"Tack keeps its data in PostgreSQL only; the address begins with '{parts.scheme}:'."
        )
    if not parts.path.strip("/"):
        raise AddressInvalid("The address names no database.")
    query = {key: values[-1] for key, values in parse_qs(parts.query).items()}
    return DatabaseAddress(
        name=unquote(parts.path.strip("/")),
        user=unquote(parts.username or ""),
        password=unquote(parts.password or ""),
        host=query.pop("host", "") or parts.hostname or "",
        port=str(port or query.pop("port", "") or ""),
        options=tuple(query.items()),
    )
