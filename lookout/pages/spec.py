"""A job as YAML for people: keys in the order people write them, short lists in one line, scripts as they are."""

from collections.abc import Mapping
from typing import Any

import yaml

_ORDER = (
    "priority", "namespace", "labels", "annotations", "name", "image", "command", "args", "workingDir", "env",
    "value", "resources", "limits", "requests",
    "activeDeadlineSeconds", "terminationGracePeriodSeconds", "restartPolicy", "nodeSelector", "initContainers",
    "containers", "volumes",
)  # fmt: skip
"""The database sorts the keys of what it stores; this is how they are read."""
_PLACE = {key: place for place, key in enumerate(_ORDER)}
_LONGEST_IN_LINE = 80


def spec_yaml(document: Mapping[str, Any]) -> str:
    """The text of a document whose own keys stand in order already; those within are put in order."""
    ordered = {key: _ordered(value) for key, value in document.items()}
    return yaml.dump(ordered, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=10_000)


def _ordered(value: Any) -> Any:
    if isinstance(value, Mapping):
        keys = sorted(value, key=lambda key: (_PLACE.get(key, len(_ORDER)), key))
        return {key: _ordered(value[key]) for key in keys}
    return [_ordered(item) for item in value] if isinstance(value, list) else value


class _Dumper(yaml.SafeDumper):
    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: FBT001, FBT002  its signature
        super().increase_indent(flow, indentless=False)


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


def _list(dumper: yaml.SafeDumper, items: list[Any]) -> yaml.Node:
    return dumper.represent_sequence("tag:yaml.org,2002:seq", items, flow_style=_fits_a_line(items))


def _mapping(dumper: yaml.SafeDumper, items: dict[str, Any]) -> yaml.Node:
    flow = len(items) > 1 and _fits_a_line([*items, *items.values()])
    return dumper.represent_mapping("tag:yaml.org,2002:map", items, flow_style=flow)


def _fits_a_line(items: list[Any]) -> bool:
    if any(isinstance(item, (dict, list)) for item in items):
        return False
    texts = [str(item) for item in items]
    return sum(len(text) + 2 for text in texts) <= _LONGEST_IN_LINE and not any(
        "\n" in text for text in texts
    )


_Dumper.add_representer(str, _text)
_Dumper.add_representer(list, _list)
_Dumper.add_representer(dict, _mapping)
