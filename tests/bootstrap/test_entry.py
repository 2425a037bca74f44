"""`./tack` on a fresh machine: it finds a Python by executing candidates and makes its environment from the lock."""

import ast
import importlib.machinery
import importlib.util
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest

from tests.benchmarks.__main__ import BENCHMARKS, usage

CHECKOUT = Path(__file__).resolve().parent.parent.parent
REAL_PYTHON = Path(sys.base_prefix) / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SetUp:
    """A small checkout after its first `./tack get jobs`."""

    checkout: Path
    first: subprocess.CompletedProcess[str]


def test_pythons_of_long_ago_can_parse_it() -> None:
    newer = (ast.JoinedStr, ast.AnnAssign, ast.NamedExpr, ast.AsyncFunctionDef, ast.Match)
    tree = ast.parse((CHECKOUT / "tack").read_text())
    assert [type(node).__name__ for node in ast.walk(tree) if isinstance(node, newer)] == []
    assert not any(function.returns for function in ast.walk(tree) if isinstance(function, ast.FunctionDef))


def test_a_newer_python_is_found_behind_broken_and_old_ones(
    entry: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, home = tmp_path / "bin", tmp_path / "home"
    script(path / "python3.13", "exit 127")  # a shim for a version that is not installed
    script(path / "python3", "echo 3 11")
    hidden = script(home / ".pyenv" / "versions" / "3.13.0" / "bin" / "python", f'exec "{REAL_PYTHON}" "$@"')
    monkeypatch.setenv("PATH", f"{path}:/usr/bin:/bin")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("PYENV_ROOT", raising=False)
    monkeypatch.delenv("TACK_PYTHON", raising=False)
    assert [candidate for candidate in entry.candidates() if candidate.startswith(str(tmp_path))] == [
        str(path / "python3.13"),
        str(path / "python3"),
        str(hidden),
    ]
    found, version = entry.find_python()
    assert version >= (3, 12)
    assert found == str(hidden) or not found.startswith(str(tmp_path))


def test_a_python_that_cannot_make_environments_is_passed_over_and_named(
    entry: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = script(tmp_path / "bin" / "python3.13", 'case "$2" in *ensurepip) exit 1;; *) echo 3 13;; esac')
    monkeypatch.setenv("PATH", str(bare.parent))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    monkeypatch.delenv("TACK_PYTHON", raising=False)
    monkeypatch.setattr(entry.glob, "glob", lambda _: [])  # whatever this machine has elsewhere
    with pytest.raises(entry.Stop, match=r"python3\.13 \(3\.13, but without ensurepip\)"):
        entry.find_python()


def test_the_named_python_wins_and_is_refused_with_the_reason_when_it_is_too_old(
    entry: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TACK_PYTHON", str(REAL_PYTHON))
    assert entry.find_python() == (str(REAL_PYTHON), sys.version_info[:2])
    monkeypatch.setenv("TACK_PYTHON", str(script(tmp_path / "old", "echo 3 9")))
    with pytest.raises(entry.Stop, match=r"it is Python 3\.9\. Tack needs Python 3\.12 or newer"):
        entry.find_python()
    monkeypatch.setenv("TACK_PYTHON", str(tmp_path / "absent"))
    with pytest.raises(entry.Stop, match="No such file"):
        entry.find_python()


def test_a_fresh_checkout_is_set_up_once(set_up: SetUp) -> None:
    assert (set_up.first.returncode, set_up.first.stdout) == (0, "command line: get jobs\n")
    assert "making .venv" in set_up.first.stderr
    assert tack(set_up.checkout, "get", "jobs").stderr == ""


def test_it_runs_from_any_folder_and_takes_nothing_from_there(set_up: SetUp, tmp_path: Path) -> None:
    (tmp_path / "lookout").mkdir()
    (tmp_path / "lookout" / "__init__.py").write_text("raise SystemExit('wrong folder')")
    assert (
        tack(set_up.checkout, "up", "--port", "8123", folder=tmp_path).stdout == "supervisor: --port 8123\n"
    )


def test_commands_of_the_server_run_in_its_environment(set_up: SetUp, tmp_path: Path) -> None:
    for words, handed_on in (("person olga --token", "person olga --token"), ("manage shell", "shell")):
        done = tack(set_up.checkout, *words.split(), folder=tmp_path)
        assert done.stdout == f"manage: {handed_on}\n"


def test_a_changed_lock_is_installed_into_the_environment_there_is(set_up: SetUp) -> None:
    (set_up.checkout / "requirements.lock").write_text("# changed\n")
    again = tack(set_up.checkout, "get", "jobs")
    assert "installing" in again.stderr
    assert "making .venv" not in again.stderr


def test_a_package_that_differs_from_its_hash_is_not_installed(set_up: SetUp, tmp_path: Path) -> None:
    (tmp_path / "example-1.0-py3-none-any.whl").write_bytes(b"not what was promised")
    (set_up.checkout / "requirements.lock").write_text(f"example==1.0 \\\n    --hash=sha256:{'0' * 64}\n")
    done = tack(set_up.checkout, "get", "jobs", PIP_NO_INDEX="1", PIP_FIND_LINKS=str(tmp_path))
    assert done.returncode == 1
    assert "differs from what the lock promises" in done.stderr


def test_an_environment_whose_making_was_cut_short_is_made_again(tmp_path: Path) -> None:
    checkout = small_checkout(tmp_path)
    (checkout / ".venv" / "bin").mkdir(parents=True)
    (checkout / ".venv" / ".tack-unfinished").touch()
    assert tack(checkout, "get", "queues").stdout == "command line: get queues\n"


@pytest.mark.parametrize("name", ["requirements.lock", "requirements-dev.lock"])
def test_locks_have_a_hash_for_everything_and_no_address(name: str) -> None:
    text = (CHECKOUT / name).read_text()
    blocks = [
        block
        for block in text.replace("\\\n", " ").splitlines()
        if block and not block.startswith((" ", "#"))
    ]
    assert "://" not in text
    assert len(blocks) > 40
    assert [block for block in blocks if "--hash=sha256:" not in block] == []


def test_what_tack_runs_on_has_one_version_in_both_locks() -> None:
    run, develop = (pins(name) for name in ("requirements.lock", "requirements-dev.lock"))
    assert run.items() <= develop.items()


def pins(name: str) -> dict[str, str]:
    lines = (CHECKOUT / name).read_text().splitlines()
    return dict(line.split(" ")[0].split("==") for line in lines if "==" in line and line[0].isalnum())


@pytest.fixture(scope="module")
def set_up(tmp_path_factory: pytest.TempPathFactory) -> SetUp:
    """A small checkout that was set up; tests may change its locks."""
    checkout = small_checkout(tmp_path_factory.mktemp("entry"))
    return SetUp(checkout=checkout, first=tack(checkout, "get", "jobs"))


@pytest.fixture
def entry(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The file ./tack as a module, whose .venv is the one these tests run in."""
    loader = importlib.machinery.SourceFileLoader("tack_entry", str(CHECKOUT / "tack"))
    spec = importlib.util.spec_from_loader("tack_entry", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    monkeypatch.setattr(module, "VENV", sys.prefix)
    return module


def script(path: Path, line: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{line}\n")
    path.chmod(0o755)
    return path


def small_checkout(folder: Path) -> Path:
    """A checkout with the real ./tack, locks without packages, and programs that only say who they are."""
    checkout = folder / "checkout"
    for module, name in (("cli", "command line"), ("embedded", "supervisor")):
        package = checkout / "lookout" / module
        package.mkdir(parents=True)
        (package / "__init__.py").touch()
        (package / "__main__.py").write_text(f"import sys\nprint('{name}:', *sys.argv[1:])\n")
    (checkout / "lookout" / "__init__.py").touch()
    (checkout / "manage.py").write_text("import sys\nprint('manage:', *sys.argv[1:])\n")
    for lock in ("requirements.lock", "requirements-dev.lock"):
        (checkout / lock).write_text("# nothing\n")
    (checkout / "tack").write_bytes((CHECKOUT / "tack").read_bytes())
    (checkout / "tack").chmod(0o755)
    return checkout


def tack(
    checkout: Path, *words: str, folder: Path | None = None, **more: str
) -> subprocess.CompletedProcess[str]:
    environment: Mapping[str, str] = {**os.environ, "TACK_PYTHON": str(REAL_PYTHON), "PYTHONPATH": "", **more}
    return subprocess.run(
        [checkout / "tack", *words],
        env=environment,
        cwd=folder or checkout,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_the_help_of_bench_says_what_each_measures() -> None:
    told = usage().splitlines()
    assert told[0].startswith("usage: tack bench {agents,")
    assert [line.split()[0] for line in told[2:]] == list(BENCHMARKS)
    assert all(line.endswith(".") for line in told[2:])
