"""What verbs and reads refuse, each with the fix in its sentence. Entry points turn them into answers."""

from collections.abc import Sequence

from policies.problems import Problem


class SchedulerError(Exception):
    """A verb or read refused. The message is for the person who asked."""


class NotFound(SchedulerError):
    """What was named does not exist."""

    def __init__(self, kind: str, name: str, *, problems: Sequence[Problem] = ()) -> None:
        """`problems` is everything wrong with a document that named it, this too."""
        super().__init__(f"There is no {kind} '{name}'.")
        self.kind = kind
        self.name = name
        self.problems = tuple(problems)


class AlreadyExists(SchedulerError):
    """What was to be made exists."""

    def __init__(self, kind: str, name: str) -> None:
        super().__init__(f"{kind.capitalize()} '{name}' exists already. Update it, or choose another name.")
        self.kind = kind
        self.name = name


class Conflict(SchedulerError):
    """The state of things stands in the way."""

    def __init__(self, message: str, *, names: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.names = tuple(names)


class Invalid(SchedulerError):
    """What was sent is well-formed and makes no sense here."""

    def __init__(self, message: str, *, path: str = "", names: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.path = path
        self.names = tuple(names)


class TooMuchAsked(SchedulerError):
    """The answer would take too long. The message says how to ask for less."""
