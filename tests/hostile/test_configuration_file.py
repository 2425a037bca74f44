"""The configuration file and the environment: a sentence for whoever starts Tack, never a traceback."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from scheduler.agent.config import load_agent_configuration
from scheduler.config import ConfigurationInvalid, load_configuration
from tests.hostile.soon import soon

type Load = Callable[[Path | None, Mapping[str, str]], object]
LOADERS: tuple[Load, ...] = (load_configuration, load_agent_configuration)

FILES: dict[str, bytes] = {
    "a key twice": b"executorTimeout: 1h\nexecutorTimeout: 2h\n",
    "a key twice in a section": b"scheduling: {maxRetries: 1, maxRetries: 2}\n",
    "an alias": b"scheduling: &a {maxRetries: 1}\nkubernetes: *a\n",
    "a tag": b"scheduling: !!python/object/apply:os.system ['true']\n",
    "a merge key": b"scheduling: {<<: {maxRetries: 1}}\n",
    "two documents": b"executorTimeout: 1h\n---\nexecutorTimeout: 2h\n",
    "no YAML": b"scheduling: [\n",
    "a list": b"- scheduling\n",
    "text": b"scheduling\n",
    "no UTF-8": b"\xff\xfe",
    "a NUL": b'executorTimeout: "1h\\0"\n',
    "nesting": b"[" * 100_000,
    "nested mappings": b"{a: " * 500 + b"}" * 500,
    "many values": b"[" + b"[]," * 80_000 + b"]",
    "too large": b"#" * 10_000_000,
    "a bomb": b"\n".join(b"a%d: &a%d [%s]" % (n, n, b"*a%d, *a%d" % (n - 1, n - 1)) for n in range(1, 99)),
}

HUGE = "0x" + "f" * 5_000
NO_LINE = ('"a\\nb"', '"a\\u202eb"', '"\\e[2J"', "7", "[]")
NO_DURATION = ("-1s", "1", "soon", '""', "[]", "true", "99999999999999999999h", "9" * 400 + "h", HUGE)

KEYS = {
    "executorTimeout": ("0s", '"1h\\n"', *NO_DURATION),
    "scheduling": ("5", "[]", "x", "{1: 2}", "{retryPolicy: 5}", "{retryPolicy: {enabled: 1}}"),
    "scheduling.maxRetries": (
        "-1",
        "4294967296",
        "18446744073709551616",
        "1.5",
        ".nan",
        "1e400",
        "true",
        HUGE,
    ),
    "scheduling.maximumSchedulingRate": (".nan", ".inf", "-.inf", "-1", "1e400", HUGE),
    "scheduling.nodeIdLabel": ('""', "x" * 318, *NO_LINE),
    "scheduling.indexedNodeLabels": ("{}", "x", f"[{'x' * 318}]", *(f"[{line}]" for line in NO_LINE)),
    "scheduling.retryPolicy.defaultPolicyName": ("x" * 318, *NO_LINE),
}
AGENT_KEYS = {
    "application.pool": ('""', "x" * 64, *NO_LINE),
    "application.errorCategories": ("5", "[]", "{enabled: 1}", "{a: 1}", "{defaultCategory: [x]}"),
    "kubernetes.trackedNodeLabels": ("x", *(f"[{line}]" for line in NO_LINE)),
    "kubernetes.stuckTerminatingPodExpiry": NO_DURATION,
    "task.jobLeaseRenewalInterval": ("0s", *NO_DURATION),
    "local.nodes": ("0", "-1", "1001", "18446744073709551616", "1.5", "true", HUGE),
    "local.cpu": ("0", "-1", "9223372036854775807", "1e300", "x", "true", ".nan", HUGE),
    "local.memory": ("0", "-1", "x", "[]", "true", ".inf", '"1Gi\\n"'),
    "local": ("5", "[]", "x", "{colour: red}"),
}


def written(folder: Path, text: str | bytes) -> Path:
    file = folder / "tack.yaml"
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return file


def document(key: str, value: str) -> str:
    """`a.b` with its value as YAML."""
    sections = key.split(".")
    return "{" + ": {".join(sections) + ": " + value + "}" * len(sections)


def cases(keys: dict[str, tuple[str, ...]]) -> list[Any]:
    return [
        pytest.param(key, value, id=f"{key}: {value[:20]}")
        for key, values in keys.items()
        for value in values
    ]


def refused(load: Load, file: Path | None, environment: dict[str, str]) -> list[str]:
    """The sentences with which the configuration is refused, soon, each fit to be read."""
    with soon(), pytest.raises(ConfigurationInvalid) as refusal:
        load(file, environment)
    for sentence in refusal.value.problems:
        assert len(sentence) < 600
        assert all(character.isprintable() or character == "\n" for character in sentence)
    return refusal.value.problems


@pytest.mark.parametrize("load", LOADERS)
@pytest.mark.parametrize("content", FILES.values(), ids=FILES)
def test_a_file_that_cannot_be_read_is_told_by_its_path(tmp_path: Path, content: bytes, load: Load) -> None:
    file = written(tmp_path, content)
    assert str(file) in refused(load, file, {})[0]


@pytest.mark.parametrize("load", LOADERS)
@pytest.mark.parametrize("name", ["missing.yaml", "folder"])
def test_a_file_that_is_none_is_told_by_its_path(tmp_path: Path, name: str, load: Load) -> None:
    (tmp_path / "folder").mkdir()
    assert str(tmp_path / name) in refused(load, tmp_path / name, {})[0]


@pytest.mark.parametrize(("key", "value"), cases(KEYS))
def test_a_value_that_makes_no_sense_is_told_by_its_key(tmp_path: Path, key: str, value: str) -> None:
    assert key in refused(load_configuration, written(tmp_path, document(key, value)), {})[0]


@pytest.mark.parametrize(("key", "value"), cases(AGENT_KEYS))
def test_a_value_that_makes_no_sense_to_the_agent_is_told_by_its_key(
    tmp_path: Path, key: str, value: str
) -> None:
    assert key in refused(load_agent_configuration, written(tmp_path, document(key, value)), {})[0]


@pytest.mark.parametrize(
    "value", ["[", "*a", "!!python/none x", "{a: 1, a: 2}", "[" * 100_000, HUGE, "x: \t@"]
)
def test_the_environment_is_read_as_strictly(value: str) -> None:
    refused(load_configuration, None, {"TACK__SCHEDULING__MAXRETRIES": value})
    refused(load_agent_configuration, None, {"TACK__LOCAL__NODES": value})


def test_the_environment_fills_a_section_that_the_file_leaves_empty(tmp_path: Path) -> None:
    file = written(tmp_path, "scheduling:\nlocal:\n")
    environment = {"TACK__SCHEDULING__MAXRETRIES": "7", "TACK__LOCAL__NODES": "3"}
    assert load_configuration(file, environment).max_retries == 7
    assert len(load_agent_configuration(file, environment).local_nodes) == 3
