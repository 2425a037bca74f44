"""Files of kind Queue: read into the fields of a queue, every problem with its line, before anything is sent."""

from collections.abc import Callable, Iterator
from typing import Any

from lookout.cli.files import FileProblem, LoadedFile
from policies.fields import unknown_field

API_VERSION = "armadaproject.io/v1beta1"
KIND = "Queue"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) and item for item in value)


def _are_labels(value: Any) -> bool:
    return isinstance(value, dict) and all(
        key and isinstance(item, str) and item for key, item in value.items()
    )


def _are_permissions(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, dict) for item in value)


_FIELDS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "name": (lambda value: isinstance(value, str) and bool(value), "Give the queue's name as text."),
    "priorityFactor": (
        lambda value: _is_number(value) and value >= 1,
        "The priority factor is a number, 1 or above.",
    ),
    "userOwners": (_are_texts, "The owners are a list of names."),
    "groupOwners": (_are_texts, "The groups of owners are a list of names."),
    "permissions": (_are_permissions, "The permissions are a list of subjects and verbs."),
    "cordoned": (lambda value: isinstance(value, bool), "cordoned is true or false."),
    "labels": (_are_labels, "The labels are names with texts, neither of them empty. Quote a number."),
    "retryPolicies": (_are_texts, "The retry policies are a list of names, in the order they count."),
}
_HEAD = {"apiVersion": API_VERSION, "kind": KIND}
_NAMES = {name.lower(): name for name in (*_HEAD, *_FIELDS)}


def queue_spec(file: LoadedFile) -> dict[str, Any]:
    """The fields of the queue in the file, as the API takes them. Raises FileRefused with every problem."""
    if problems := [*file.problems, *_problems(file.value)]:
        raise file.refused(problems)
    fields = {_NAMES[key.lower()]: value for key, value in file.value.items() if value is not None}
    return {name: value for name, value in fields.items() if name not in _HEAD}


def head_of(file: LoadedFile) -> dict[str, Any]:
    """`apiVersion` and `kind` of any file; letter case of the names is forgiven."""
    written = file.value.items() if isinstance(file.value, dict) else ()
    return {_NAMES[key.lower()]: value for key, value in written if _NAMES.get(key.lower()) in _HEAD}


def _problems(value: Any) -> Iterator[FileProblem]:
    if not isinstance(value, dict):
        yield FileProblem(path="", message=f"There is no queue here. Begin with apiVersion: {API_VERSION}.")
        return
    seen: dict[str, str] = {}
    for key, item in value.items():
        name = _NAMES.get(key.lower())
        if name is None:
            yield FileProblem(path=key, message=unknown_field(key, _NAMES.values()))
        elif name in seen:
            yield FileProblem(
                path=key, message=f"This is written twice, once as {seen[name]}. Keep one of them."
            )
        elif name in _HEAD and item != _HEAD[name]:
            yield FileProblem(path=key, message=f"For a queue this is {_HEAD[name]}, not {item}.")
        elif name in _FIELDS and item is not None and not _FIELDS[name][0](item):
            yield FileProblem(path=key, message=_FIELDS[name][1])
        seen.setdefault(name or key, key)
    for name in (*_HEAD, "name"):
        if name not in seen:
            yield FileProblem(
                path=name, message=f"This is missing{f': {_HEAD[name]}' if name in _HEAD else ''}."
            )
