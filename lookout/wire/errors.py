"""What can go wrong between a client and Tack: one class per cause, each with the fix in its sentence."""

from dataclasses import dataclass


class TackError(Exception):
    """Tack did not do what was asked. The message is for the person who asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing wrong with what was sent. `path` names the place, as in rules[2].mutate.resources.memory."""

    path: str
    message: str
    line: int | None = None

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


class NothingAnswers(TackError):
    """No Tack answers at the address."""

    def __init__(self, url: str) -> None:
        super().__init__(f"Nothing answers at {url}. Start Tack with ./tack up, or name another with --url.")
        self.url = url


class TooSlow(TackError):
    """Tack took longer to answer than the client waits."""

    def __init__(self, url: str, *, seconds: float) -> None:
        super().__init__(
            f"{url} did not answer within {seconds:g} seconds. What was asked may have been done: look before asking again."
        )
        self.url = url


class AddressUnknown(TackError):
    """Neither an argument nor the environment nor a file says where Tack is."""

    def __init__(self) -> None:
        super().__init__(
            "Nothing says where Tack is. Start it with ./tack up, or name it with --url or TACK_URL."
        )


class AddressInvalid(TackError):
    """The address is not one of a web server."""

    def __init__(self, url: str) -> None:
        super().__init__(f"'{url}' is no address of Tack. Write it as http://host:port.")


class TokenFileUnreadable(TackError):
    """The token file cannot be used."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(
            f"The token file {path} cannot be used: {why}. It holds two lines, the address and the token."
        )


class TokenInvalid(TackError):
    """What was given as a token cannot be one."""

    def __init__(self) -> None:
        super().__init__("The token holds characters no token has. Copy it again, without what is around it.")


class Unsendable(TackError):
    """What was to be sent cannot be written down."""

    def __init__(self, why: str) -> None:
        super().__init__(f"This cannot be sent: {why}.")


class UnexpectedAnswer(TackError):
    """What came back is not an answer of Tack."""

    def __init__(self, url: str, what: str) -> None:
        super().__init__(
            f"{url} answered what Tack does not: {what}. Is the address right, and Tack of the same version?"
        )


class Refused(TackError):
    """Tack understood and refused. Holds the status, the code and every problem named; the message is its sentence."""

    def __init__(self, *, status: int, code: str, message: str, problems: tuple[Problem, ...] = ()) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.problems = problems


class NotSignedIn(Refused):
    """401: no token, or one that is unknown, spent or expired."""


class NotPermitted(Refused):
    """403: the token's owner may not do this."""


class NotFound(Refused):
    """404: what was named does not exist."""


class Conflict(Refused):
    """409: the state of things stands in the way (it exists already, it is attached, somebody else edited it)."""


class Invalid(Refused):
    """400: what was sent cannot be accepted; `problems` lists everything wrong with it."""


class Busy(Refused):
    """503, or 429 for whoever asks too often: not now. `retry_after_seconds` says when to ask again."""

    retry_after_seconds: float = 1.0


REFUSALS: dict[int, type[Refused]] = {
    400: Invalid,
    401: NotSignedIn,
    403: NotPermitted,
    404: NotFound,
    409: Conflict,
    429: Busy,
    503: Busy,
}
"""The class of a refusal by its HTTP status; any other is a plain Refused."""
