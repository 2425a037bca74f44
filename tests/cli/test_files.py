"""Files are read strictly: what two readers could understand differently is told by line."""

import io
from dataclasses import replace
from pathlib import Path

import pytest

from lookout.cli import files
from lookout.cli.files import FileRefused, load_file
from policies.lines import nearest_line
from tests.cli.conftest import Tack


def written(folder: Path, text: str | bytes) -> Path:
    path = folder / "file.yaml"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (
            "a: 1\nb: [yes, 'yes', 1e3, 07, 1:30, 2026-01-01]",
            {"a": 1, "b": [True, "yes", 1000, 7, "1:30", "2026-01-01"]},
        ),
        ("", None),
        ("# nothing\n", None),
        ('{"a": "\\ud83d\\ude00 \\/"}', {"a": "😀 /"}),
        ('{\n\t"a": [1,\n\t\t2.5]\n}', {"a": [1, 2.5]}),
        ("{a: b}", {"a": "b"}),
        ("\ufeffa: 1", {"a": 1}),
    ],
)
def test_yaml_and_json_say_what_they_say(tmp_path: Path, text: str, value: object) -> None:
    file = load_file(written(tmp_path, text))
    assert (file.value, file.problems) == (value, ())


@pytest.mark.parametrize(
    ("text", "line", "path"),
    [
        ("a: 1\na: 2\n", 2, "a"),
        ("a:\n  - b: 1\n    b: 2\n", 3, "a[0].b"),
        ("a: .inf\n", 1, "a"),
        ("a: 0x" + "f" * 5_000, 1, "a"),
        ('{\n\t"a": 1,\n\t"a": 2}', 3, "a"),
    ],
)
def test_what_is_ambiguous_is_a_problem_with_its_line(
    tmp_path: Path, text: str, line: int, path: str
) -> None:
    (problem,) = load_file(written(tmp_path, text)).problems
    assert (problem.line, problem.path) == (line, path)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (b"a: [1\nb: 2\n", ":2: This is not YAML: "),
        (b"a: b: c\n", ":1: This is not YAML: "),
        (b"\xff\xfe", ": This is not UTF-8 text."),
        (b"a: 1\n---\nb: 2\n", ":2: There is a second document. Write one per file."),
        (b"a: \x00\n", ": This is not YAML: "),
        (b"a: &x [1]\nb: *x\n", ":1: The anchor 'x' is not allowed."),
        (b"a: 1\nb: *x\n", ":2: The alias 'x' is not allowed."),
        (b"a: !!str 1\n", ":1: The tag "),
        (b"<<: {a: 1}\n", ":1: The merge key << is not allowed."),
        (b"? [1]\n: 2\n", ":1: A field name must be text, not a list."),
        (b"[" * 80 + b"]" * 80, ":1: The document is nested deeper than 50 levels."),
        (b"a: '\xef\xbf\xbe", ": This is not YAML: "),
        (b"#" * (16 * 1024 * 1024 + 1), ": This is larger than 16,384 KiB."),
        (b"[" * 100_000, ":1: This is not YAML: "),
        (b'{"a": "\\ud83d\\ude00", "a": 2}', ": a: This key is there twice."),
    ],
)
def test_what_cannot_be_read_is_refused_with_the_files_name(tmp_path: Path, text: bytes, told: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(FileRefused) as refused:
        load_file(path)
    assert refused.value.message.startswith(f"{path}{told}")


def test_a_document_of_more_values_than_may_be_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert files.LIMITS.nodes == 1_000_000
    monkeypatch.setattr(files, "LIMITS", replace(files.LIMITS, nodes=1_000))
    path = written(tmp_path, b"[" + b"[]," * 1_001 + b"]")
    with pytest.raises(FileRefused) as refused:
        load_file(path)
    assert refused.value.message.startswith(f"{path}:1: The document has more than 1,000 values.")


def test_problems_beyond_counting_are_counted(tmp_path: Path) -> None:
    problems = load_file(written(tmp_path, "a: 1\n" * 300)).problems
    told = str(FileRefused("x", problems))
    assert told.count("\n") == 100
    assert told.endswith("There are 199 problems more.")


def test_a_problem_stands_at_the_nearest_line_that_is_in_the_file(tmp_path: Path) -> None:
    file = load_file(written(tmp_path, "jobs:\n  - podSpec:\n      containers: [{}]\n"))
    assert nearest_line(file.lines, "jobs[0].podSpec.containers[0].resources.limits.memory") == 3
    assert nearest_line(file.lines, "jobs[7].podSpec") == 1
    assert nearest_line(file.lines, "queue") is None


def test_a_file_that_is_not_there_is_told_by_name(tack: Tack, tmp_path: Path) -> None:
    said = tack("create", "-f", str(tmp_path / "missing.yaml"))
    assert (said.code, said.err) == (1, f"Error: {tmp_path / 'missing.yaml'}: No such file or directory.\n")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("name: x\n", "kind: Say what this is: Queue or RetryPolicy."),
        ("kind: Job\n", "1: kind: This is 'Job'; it can be Queue or RetryPolicy."),
        ("", "kind: Say what this is: Queue or RetryPolicy."),
        ("- a\n", "kind: Say what this is: Queue or RetryPolicy."),
        ("kind: [Queue]\n", "1: kind: This is '['Queue']'; it can be Queue or RetryPolicy."),
    ],
)
def test_a_file_that_does_not_say_what_it_is_is_refused(
    tack: Tack, tmp_path: Path, text: str, told: str
) -> None:
    said = tack("create", "-f", str(written(tmp_path, text)))
    assert said.code == 1
    assert said.err.rstrip().endswith(told)


def test_a_dash_is_the_standard_input(tack_alone: Tack, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "apiVersion: armadaproject.io/v1beta1\nkind: Queue\nname: nightly\n"
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert tack_alone("create", "-f", "-", "--dry-run").out == "standard input is valid. Nothing was sent.\n"
