"""What a run wrote, made safe to read: no escape sequence acts, no character hides, no line is endless."""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

LONGEST_LINE = 2_000
"""Characters of a line that are shown; the download has them all."""
_DUMPED = 512

_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # colours and cursor moves
    r"|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)"  # titles and links of a terminal
    r"|\x1b[PX^_].*?\x1b\\"  # device strings
    r"|\x1b[ -/]*[0-~]",
    re.DOTALL,
)
_TEXT_BYTES = frozenset({0x07, 0x08, 0x09, 0x0A, 0x0C, 0x0D, 0x1B, *range(0x20, 0x100)})


@dataclass(frozen=True, kw_only=True, slots=True)
class Line:
    """One line. The number is empty where lines before it were not kept, so that nobody knows it."""

    number: str
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Printout:
    """The lines to show, and a note where they are not all there is."""

    lines: tuple[Line, ...] = ()
    note: str = ""
    cut: bool = False
    """There are lines before these that were kept as well."""


def readable(head: bytes, tail: bytes, dropped_bytes: int, *, last: int = 200) -> Printout:
    """The last lines of what was kept. Bytes that are no text are shown as a dump of their beginning."""
    kept = head + tail
    if _is_binary(kept):
        return Printout(
            lines=tuple(_dump(kept[:_DUMPED])), note=f"Not text: the first bytes of {len(kept):,}"
        )
    if not dropped_bytes:
        numbered = [(str(number), text) for number, text in enumerate(_lines(kept), start=1)]
        note = f"The last {last} of {len(numbered):,} lines" if len(numbered) > last else ""
    else:
        numbered = [("", text) for text in _lines(tail)]
        note = f"The end; {dropped_bytes:,} bytes between the first and the last 64 KiB were not kept"
    lines = tuple(Line(number=n, text=text) for n, text in numbered[-last:])
    return Printout(lines=lines, note=note, cut=len(numbered) > last)


def plain(text: str) -> str:
    """Text with its escape sequences taken out and every invisible character shown by its code."""
    return "".join(_shown(letter) for letter in _ESCAPES.sub("", text))


def _lines(kept: bytes) -> list[str]:
    text = kept.decode(errors="replace").replace("\r\n", "\n")
    lines = text.split("\n")
    if lines and not lines[-1]:
        lines.pop()
    return [_cut(plain(_last_overwrite(line))) for line in lines]


def _last_overwrite(line: str) -> str:
    """What a terminal would show of a line that was written over and over, as progress bars are."""
    return next((part for part in reversed(line.split("\r")) if part), "")


def _cut(line: str) -> str:
    return line if len(line) <= LONGEST_LINE else f"{line[:LONGEST_LINE]}… ({len(line):,} characters)"


def _shown(letter: str) -> str:
    if letter in "\t\n" or letter.isprintable() or unicodedata.category(letter) in ("Zs", "Co"):
        return letter
    code = ord(letter)
    return chr(0x2400 + code) if code < 0x20 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _is_binary(kept: bytes) -> bool:
    sample = kept[:4_096]
    strange = sum(byte not in _TEXT_BYTES for byte in sample)
    # Bytes above 0x7f are text in many encodings; what matters is how much of it is not valid UTF-8.
    broken = sample.decode(errors="replace").count("�")
    return strange > max(8, len(sample) // 20) or broken > max(8, len(sample) // 4)


def _dump(kept: bytes) -> Iterator[Line]:
    for start in range(0, len(kept), 16):
        row = kept[start : start + 16]
        letters = "".join(chr(byte) if 0x20 <= byte < 0x7F else "·" for byte in row)
        yield Line(number=f"{start:x}", text=f"{row.hex(' '):<47}  {letters}")
