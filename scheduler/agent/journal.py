"""The journal: what the agent knows of its runs, on disk before it acts. A killed agent loses nothing.

A file of lines, each the whole entry of one run or the word that it is forgotten; the last line of a run
counts. Writing is one append and one wait for the disk for any number of entries. A line cut off by a crash
is ignored: what it would have said had not happened yet.
"""

import fcntl
import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from scheduler.agent.judging import Intent, Order
from scheduler.agent.lifecycle import End, Entry
from scheduler.agent.wire import report_from_json, report_json
from scheduler.executors.instants import Instant

NAME = "journal"
_COMPACT_AFTER_BYTES = 4 * 1024 * 1024


class JournalInUseError(Exception):
    """Another agent works with this folder. Stop it, or give this one a folder of its own."""


class Journal:
    """Entries by run. Reading is from memory; every change is on disk when the call returns."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        folder.chmod(0o700)
        self._path = folder / NAME
        self._lock = os.open(folder / f"{NAME}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._lock)
            raise JournalInUseError(
                f"Another agent works with the folder {folder}. Stop it, or choose another folder."
            ) from None
        self._entries = dict(_read(self._path))
        self._file = self._compact()

    def __iter__(self) -> Iterator[Entry]:
        return iter(list(self._entries.values()))

    def __contains__(self, run_id: str) -> bool:
        return run_id in self._entries

    def get(self, run_id: str) -> Entry | None:
        """The entry of a run, if there is one."""
        return self._entries.get(run_id)

    def put(self, entries: Iterable[Entry]) -> None:
        """Write these entries, each in place of what there was of its run."""
        changed = [entry for entry in entries if self._entries.get(entry.run_id) != entry]
        self._append([_entry_json(entry) for entry in changed])
        self._entries.update({entry.run_id: entry for entry in changed})

    def forget(self, run_id: str) -> None:
        """Nothing more is to be done about this run."""
        if run_id in self._entries:
            self._append([{"run": run_id, "forgotten": True}])
            del self._entries[run_id]

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._file)
        os.close(self._lock)

    def _append(self, lines: list[dict[str, Any]]) -> None:
        if not lines:
            return
        data = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines).encode()
        if self._size + len(data) > _COMPACT_AFTER_BYTES + 2 * self._compact_size:
            os.close(self._file)
            self._file = self._compact()
        _write_all(self._file, data)
        os.fdatasync(self._file)
        self._size += len(data)

    def _compact(self) -> int:
        """Write the file anew with one line per run; its descriptor, for appending."""
        lines = (json.dumps(_entry_json(entry)) + "\n" for entry in self._entries.values())
        data = "".join(lines).encode()
        scratch = self._path.with_suffix(".new")
        descriptor = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        _write_all(descriptor, data)
        os.fsync(descriptor)
        scratch.replace(self._path)
        folder = os.open(self._path.parent, os.O_RDONLY | os.O_CLOEXEC)
        os.fsync(folder)
        os.close(folder)
        self._size = self._compact_size = len(data)
        return descriptor


def _write_all(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


def _read(path: Path) -> Iterator[tuple[str, Entry]]:
    found: dict[str, Entry] = {}
    if path.exists():
        for line in path.read_bytes().split(b"\n"):
            try:
                value = json.loads(line)
                if value.get("forgotten"):
                    found.pop(value["run"], None)
                else:
                    found[value["run"]] = _entry_from_json(value)
            except (ValueError, KeyError, TypeError, AttributeError):
                continue
    return iter(found.items())


def _entry_json(entry: Entry) -> dict[str, Any]:
    return {
        "run": entry.run_id,
        "node": entry.node,
        "podName": entry.pod_name,
        "intent": str(entry.intent),
        "end": None if entry.end is None else _end_json(entry.end),
    }


def _end_json(end: End) -> dict[str, Any]:
    return {
        "report": report_json(end.report),
        "order": str(end.order),
        "detected": end.detected.as_json(),
        "told": end.told,
        "gone": end.gone,
    }


def _entry_from_json(value: dict[str, Any]) -> Entry:
    entry = Entry(
        run_id=str(value["run"]),
        node=str(value["node"]),
        pod_name=str(value["podName"]),
        intent=Intent(value["intent"]),
    )
    return entry if value["end"] is None else replace(entry, end=_end_from_json(value["end"]))


def _end_from_json(value: dict[str, Any]) -> End:
    return End(
        report=report_from_json(value["report"]),
        order=Order(value["order"]),
        detected=Instant.from_json(value["detected"]),
        told=bool(value["told"]),
        gone=bool(value["gone"]),
    )
