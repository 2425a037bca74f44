"""Shelves: rooms from the fullest to the emptiest, searched without looking at each of them."""

from bisect import bisect_left, insort
from collections.abc import Iterable
from math import isqrt

from scheduler.placement import Requirements
from scheduler.planning.rooms import Room

type Entry = tuple[bool, float, int, Room]
"""Last choice or not, emptiness, number of the room, which is its own: so rooms are never compared."""
LEAST_BLOCK = 16
_ENDLESS = 1 << 64


class Shelf:
    """Rooms in order, in blocks that know the most that is left in any of theirs.

    Most of a busy pool is full: a search passes over those rooms a block at a time. Rooms that changed since the
    last search find their new place when the next begins.
    """

    def __init__(self, rooms: Iterable[Room], last_choice: Iterable[Room] = ()) -> None:
        self._last_choice = frozenset(last_choice)
        self._changed: set[Room] = set()
        self._entries: dict[Room, Entry] = {room: self._entry(room) for room in rooms}
        ordered = sorted(self._entries.values())
        self._size = max(LEAST_BLOCK, isqrt(len(ordered)))
        self._blocks = [
            _Block(ordered[first : first + self._size]) for first in range(0, len(ordered), self._size)
        ]
        for room in self._entries:
            room.watch(self._changed)

    @property
    def rooms(self) -> Iterable[Room]:
        """All of them, in no particular order."""
        return self._entries.keys()

    def find(self, wanted: Requirements) -> Room | None:
        """The fullest room that such a job fits into now."""
        self._put_in_order()
        for block in self._blocks:
            if block.may_fit(wanted) and (room := block.find(wanted)):
                return room
        return None

    def _put_in_order(self) -> None:
        for room in self._changed:
            self._remove(self._entries[room])
            self._entries[room] = entry = self._entry(room)
            self._insert(entry)
        self._changed.clear()

    def _entry(self, room: Room) -> Entry:
        return (room in self._last_choice, room.emptiness(), room.number, room)

    def _remove(self, entry: Entry) -> None:
        at = bisect_left(self._blocks, entry, key=_Block.last)
        block = self._blocks[at]
        block.remove(entry)
        if not block.entries:
            self._blocks.pop(at)

    def _insert(self, entry: Entry) -> None:
        if not self._blocks:
            self._blocks.append(_Block([]))
            at = 0
        else:
            at = min(bisect_left(self._blocks, entry, key=_Block.last), len(self._blocks) - 1)
        block = self._blocks[at]
        block.add(entry)
        if len(block.entries) > 2 * self._size:
            self._blocks[at : at + 1] = block.halves()


class _Block:
    """Neighbours on the shelf, and the most that is left in any of them; that may be told too high, never too low."""

    __slots__ = ("_is_told_too_high", "cpu_millicores", "entries", "memory_bytes")

    def __init__(self, entries: list[Entry]) -> None:
        self.entries = entries
        self.cpu_millicores = 0
        self.memory_bytes = 0
        self._measure()

    def last(self) -> Entry:
        return self.entries[-1]

    def may_fit(self, wanted: Requirements) -> bool:
        return wanted.cpu_millicores <= self.cpu_millicores and wanted.memory_bytes <= self.memory_bytes

    def find(self, wanted: Requirements) -> Room | None:
        # Most of a block does not fit, and hundreds of thousands of rooms are looked at: so much is asked here already.
        # Who asks for nothing of a resource needs none left, even where that is less than nothing.
        cpu, memory = wanted.cpu_millicores or -_ENDLESS, wanted.memory_bytes or -_ENDLESS
        for _, _, _, room in self.entries:
            if room.cpu_millicores >= cpu and room.memory_bytes >= memory and room.fits(wanted):
                return room
        if self._is_told_too_high:
            self._measure()
        return None

    def remove(self, entry: Entry) -> None:
        self.entries.pop(bisect_left(self.entries, entry))
        self._is_told_too_high = True

    def add(self, entry: Entry) -> None:
        insort(self.entries, entry)
        self.cpu_millicores = max(self.cpu_millicores, entry[3].cpu_millicores)
        self.memory_bytes = max(self.memory_bytes, entry[3].memory_bytes)

    def halves(self) -> list["_Block"]:
        half = len(self.entries) // 2
        return [_Block(self.entries[:half]), _Block(self.entries[half:])]

    def _measure(self) -> None:
        self._is_told_too_high = False
        # Not below zero: who asks for nothing of a resource needs none left.
        self.cpu_millicores = max(0, *(entry[3].cpu_millicores for entry in self.entries), 0)
        self.memory_bytes = max(0, *(entry[3].memory_bytes for entry in self.entries), 0)
