"""Started by root: play `./tack up --check` as the user nobody, in a copy of the checkout, with nothing prepared."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent
USER, GROUP = "nobody", "nogroup"
NOT_COPIED = shutil.ignore_patterns(
    ".venv", "var", ".git", "__pycache__", ".mypy_cache", ".ruff_cache", ".hypothesis"
)


def main() -> int:
    """The exit code of the check."""
    with tempfile.TemporaryDirectory(prefix="tack-ordinary-") as name:
        folder = Path(name)
        shutil.copytree(CHECKOUT, folder / "checkout", ignore=NOT_COPIED)
        (folder / "home").mkdir()
        (folder / "bin").mkdir()
        (folder / "tmp").mkdir()
        # The other way to install than the checkout's own: `./tack` takes uv where it finds it, pip elsewhere.
        shutil.copy2(Path(sys.executable).with_name("uv"), folder / "bin" / "uv")
        environment = _environment(folder) | _python(folder)
        subprocess.run(["chown", "-R", f"{USER}:{GROUP}", name], check=True)
        return _as_user([folder / "checkout" / "tack", "up", "--check"], environment, folder / "checkout")


def _environment(folder: Path) -> dict[str, str]:
    # How packages are fetched may be set in variables; everything else is what a fresh login has.
    kept = {
        name: value for name, value in os.environ.items() if name.startswith(("PIP_", "UV_")) or name == "CI"
    }
    return kept | {
        "PATH": f"{folder / 'bin'}:/usr/local/bin:/usr/bin:/bin",
        "HOME": str(folder / "home"),
        "TMPDIR": str(folder / "tmp"),
        "LANG": "C.UTF-8",
    }


def _python(folder: Path) -> dict[str, str]:
    """Name a Python the user can start: ours, or a copy of it where ours lies in a place closed to others."""
    ours = Path(sys.base_prefix) / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}"
    if _as_user([ours, "-c", ""], {}, Path("/")) == 0:
        return {"TACK_PYTHON": str(ours)}
    copy = folder / "python"
    shutil.copytree(
        sys.base_prefix,
        copy,
        symlinks=True,
        ignore=shutil.ignore_patterns("__pycache__", "test", "site-packages"),
    )
    return {"TACK_PYTHON": str(copy / "bin" / ours.name), "LD_LIBRARY_PATH": str(copy / "lib")}


def _as_user(command: list[str | Path], environment: dict[str, str], folder: Path) -> int:
    try:
        return subprocess.run(
            command,
            env=environment,
            cwd=folder,
            user=USER,
            group=GROUP,
            extra_groups=[],
            umask=0o022,
            check=False,
        ).returncode
    except PermissionError:
        return 126


if __name__ == "__main__":
    sys.exit(main())
