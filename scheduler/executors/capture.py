"""What a run writes, bounded: the head and the tail are kept, the middle is counted. Standard library only."""

KEPT_BYTES = 64 * 1024
"""Of the head, and again of the tail."""
MESSAGE_BYTES = 2048
MESSAGE_LINES = 80


class Capture:
    """Takes any amount of output and keeps a fixed amount of memory."""

    def __init__(self, kept_bytes: int = KEPT_BYTES) -> None:
        self._kept = kept_bytes
        self._head = bytearray()
        self._tail = bytearray()
        self._total = 0

    def write(self, data: bytes) -> None:
        """Take what was written next."""
        self._total += len(data)
        room = self._kept - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        if len(data) >= self._kept:
            self._tail = bytearray(data[-self._kept :])
        else:
            self._tail += data
            if len(self._tail) > 8 * self._kept:  # cut rarely: each cut moves what is kept
                del self._tail[: -self._kept]

    @property
    def head(self) -> bytes:
        """The first bytes."""
        return bytes(self._head)

    @property
    def tail(self) -> bytes:
        """The last bytes, without any that are in the head."""
        return bytes(self._tail[-self._kept :])

    @property
    def dropped_bytes(self) -> int:
        """How many bytes between the two were not kept."""
        return self._total - len(self._head) - min(len(self._tail), self._kept)


def last_lines(capture: Capture) -> str:
    """The end of what was written, as a container's termination message: 80 lines, 2048 bytes at most."""
    data = (capture.head + capture.tail if not capture.dropped_bytes else capture.tail)[-MESSAGE_BYTES:]
    text = data.decode("utf-8", errors="replace").replace("\0", "\N{REPLACEMENT CHARACTER}")
    return "\n".join(text.splitlines()[-MESSAGE_LINES:])
