"""The keys of the configuration file: the environment laid over them, each taken once, every problem gathered.

The server and the agent read the same file each for itself; this is how both do. Letter case of keys is forgiven.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol, Self

from policies.problems import DocumentInvalid
from policies.quantity import MAX_QUANTITY
from policies.tree import MAX_BYTES, object_of_text
from scheduler.fields import problem_of_line

ENVIRONMENT_PREFIX = "TACK__"
LONGEST_SECONDS = 10 * 365 * 24 * 3600.0
LONGEST_NAME = 317
"""Characters of the name of a policy or of a node label."""
_DURATION = re.compile(r"(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m(?!s))?(?:(\d+(?:\.\d+)?)s)?(?:(\d+)ms)?")


class ConfigurationInvalid(Exception):
    """The configuration contradicts itself or cannot be read. One sentence a problem, each with its fix."""

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = list(dict.fromkeys(problems))
        super().__init__("\n".join(self.problems))


class Parse[Value](Protocol):
    """Reads a document within the file; `path` says where in the file it is."""

    def __call__(self, value: object, *, path: str) -> Value: ...


class Keys:
    """The whole file, or one section of it: takes keys, gathers problems, knows what nobody took."""

    def __init__(self, document: object, path: str = "", problems: list[str] | None = None) -> None:
        self.problems: list[str] = problems if problems is not None else []
        self._path = path
        self._sections: list[Keys] = []
        if document is not None and not isinstance(document, Mapping):
            self.problems.append(f"{path.rstrip('.')} must hold keys and values.")
        self._left = dict(document) if isinstance(document, Mapping) else {}

    @classmethod
    def of_file(cls, path: Path | None, environment: Mapping[str, str]) -> Self:
        """A file, or nothing, with `TACK__SCHEDULING__MAXRETRIES` and the like laid over it.

        Raises ConfigurationInvalid where the file itself cannot be read, as strictly as policies are.
        """
        document, problems = _document(path), list[str]()
        for name, text in sorted(environment.items()):
            if name.startswith(ENVIRONMENT_PREFIX):
                try:
                    _override(document, name, text)
                except ValueError as error:
                    problems.append(f"{name} {error}")
        return cls(document, problems=problems)

    def section(self, name: str, *, shared: bool = False) -> "Keys":
        """A section. Of a shared one others take what is left here."""
        found = Keys(self._pop(name), f"{self._path}{name}.", self.problems)
        if not shared:
            self._sections.append(found)
        return found

    def sections(self) -> "Mapping[str, Keys]":
        """All that is here as sections, each by its name; of names that are free."""
        return {name: self.section(name) for name in map(str, list(self._left))}

    def listed(self, name: str, *, most: int) -> "tuple[Keys, ...]":
        """A list that is not empty, each element as a section; where there is no such list nothing is taken."""
        key = _spelled(self._left, name)
        value = self._left.get(key)
        if not isinstance(value, list) or not value:
            return ()
        del self._left[key]
        if len(value) > most:
            self.problems.append(f"{self._path}{name} has {len(value)} elements; at most {most} are allowed.")
            return ()
        found = tuple(
            Keys(each, f"{self._path}{name}[{number}].", self.problems) for number, each in enumerate(value)
        )
        self._sections.extend(found)
        return found

    def take[Value](self, name: str, read: Callable[[Any], Value], default: Value) -> Value:
        """The value of a key as `read` makes it; the default for an absent or null one, and for a bad one."""
        value = self._pop(name)
        if value is None:
            return default
        try:
            return read(value)
        except ValueError as error:
            self.problems.append(f"{self._path}{name} {error}; it is {shown(value)}.")
            return default

    def parse[Value](self, name: str, parse: Parse[Value], default: Value) -> Value:
        """A document under a key. Its problems have paths of their own."""
        try:
            return parse(self._pop(name), path=f"{self._path}{name}")
        except DocumentInvalid as error:
            self.problems.extend(f"{problem.path}: {problem.message}" for problem in error.problems)
            return default

    def leave(self, names: Iterable[str]) -> None:
        """Sections that others read."""
        for name in names:
            self._pop(name)

    def unknown_in_sections(self) -> list[str]:
        """A sentence for every key of the sections that nobody took."""
        return [problem for section in self._sections for problem in section.unknown()]

    def unknown(self) -> list[str]:
        """The same, with the keys beside the sections."""
        mine = [
            f"{self._path}{str(key)[:80]} is not a key Tack knows. Remove it, or check its spelling."
            for key in self._left
        ]
        return mine + self.unknown_in_sections()

    def _pop(self, name: str) -> Any:
        return self._left.pop(_spelled(self._left, name), None)


def _document(path: Path | None) -> dict[str, Any]:
    if path is None:
        return {}
    try:
        document = object_of_text(_start_of(path).decode("utf-8-sig"))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationInvalid([f"The configuration file {path} cannot be read: {error}"]) from error
    except DocumentInvalid as error:
        told = [f"The configuration file {path} cannot be read: {problem}" for problem in error.problems]
        raise ConfigurationInvalid(told) from error
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise ConfigurationInvalid([f"The configuration file {path} must hold keys and values."])
    return document


def _start_of(path: Path) -> bytes:
    """The whole file, unless it is far too large for one."""
    with path.open("rb") as file:
        start = file.read(MAX_BYTES + 1)
    if len(start) > MAX_BYTES:
        raise ConfigurationInvalid([f"The configuration file {path} is larger than {MAX_BYTES // 1024} KiB."])
    return start


def _override(document: dict[str, Any], variable: str, text: str) -> None:
    """Lay one variable over the document. Raises ValueError."""
    *sections, last = variable.removeprefix(ENVIRONMENT_PREFIX).split("__")
    for name in sections:
        key = _spelled(document, name)
        if document.get(key) is None:
            document[key] = {}
        document = document[key]
        if not isinstance(document, dict):
            raise ValueError("does not name a single key.")
    try:
        document[_spelled(document, last)] = object_of_text(text)
    except DocumentInvalid as error:
        raise ValueError(f"cannot be read as YAML: {shown(text)}. Quote it.") from error


def _spelled(document: Mapping[str, Any], name: str) -> str:
    return next((key for key in document if str(key).lower() == name.lower()), name)


def shown(value: object) -> str:
    """A value in a sentence, cut short, whatever it is."""
    try:
        return f"{str(value)[:80]!r}"
    except ValueError:  # thousands of digits
        return "a huge number"


def flag(value: Any) -> bool:
    """True or false. Raises ValueError, as all of these do."""
    if not isinstance(value, bool):
        raise ValueError("takes true or false")
    return value


def count(value: Any) -> int:
    """A whole number from 0."""
    return whole(0, 2**32 - 1)(value)


def whole(least: int, most: int) -> Callable[[Any], int]:
    """Reads a whole number within bounds."""

    def read(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise ValueError(f"takes a whole number from {least} to {most}")
        return value

    return read


def number(value: Any) -> float:
    """A number from 0 up."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e9:
        raise ValueError("takes a number from 0 up")
    return float(value)


def text(value: Any) -> str:
    """A line of text, perhaps empty."""
    if problem_of_line(value, most=LONGEST_NAME):
        raise ValueError(f"takes a line of text of at most {LONGEST_NAME} characters")
    return str(value)


def name_of_at_most(most: int) -> Callable[[Any], str]:
    """Reads a line of text that is not empty."""

    def read(value: Any) -> str:
        if not value or problem_of_line(value, most=most):
            raise ValueError(f"takes a name: a line of text of 1 to {most} characters")
        return str(value)

    return read


def texts(value: Any) -> tuple[str, ...]:
    """A list of lines of text."""
    if not isinstance(value, list) or any(problem_of_line(item, most=LONGEST_NAME) for item in value):
        raise ValueError(f"takes a list of texts, each a line of at most {LONGEST_NAME} characters")
    return tuple(value)


def amount(parse: Callable[[str], int]) -> Callable[[Any], int]:
    """Reads a quantity above 0 that a machine could have."""

    def read(value: Any) -> int:
        found = parse(str(value))
        if not 0 < found <= MAX_QUANTITY:
            raise ValueError("takes an amount above 0 that a machine could have")
        return found

    return read


def seconds_of(value: Any) -> float:
    """Seconds of a duration such as `1h30m`, `45s` or `250ms`."""
    match = _DURATION.fullmatch(value) if isinstance(value, str) and value else None
    if match is None:
        raise ValueError("takes a duration such as 1h, 90s or 1m30s")
    hours, minutes, whole_seconds, thousandths = (float(part or 0) for part in match.groups())
    seconds = hours * 3600 + minutes * 60 + whole_seconds + thousandths / 1000
    if seconds > LONGEST_SECONDS:
        raise ValueError("takes a duration of at most ten years")
    return seconds
