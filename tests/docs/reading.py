"""Markdown as the tests read it: pages, fenced blocks, tables, links, anchors."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

CHECKOUT = Path(__file__).parents[2]
DOCS = CHECKOUT / "docs"
REFERENCE = DOCS / "reference"

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)|(?:src|srcset)=\"([^\"]+)\"")
_HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)


@dataclass(frozen=True, kw_only=True, slots=True)
class Block:
    """A fenced block. The line is that of its first line of text."""

    page: str
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def pages() -> list[Path]:
    """Every page that people read."""
    top = [CHECKOUT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")]
    return [*top, *sorted(DOCS.rglob("*.md"))]


@cache
def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def blocks(language: str | None = None) -> list[Block]:
    """The fenced blocks of all pages, of one language or of all."""
    return [
        Block(
            page=str(page.relative_to(CHECKOUT)),
            line=text_of(page).count("\n", 0, found.start()) + 2,
            language=found[1],
            text=found[2],
        )
        for page in pages()
        for found in _FENCE.finditer(text_of(page))
        if language in (None, found[1])
    ]


def prose(page: Path) -> str:
    """A page without its fenced blocks."""
    return _FENCE.sub("", text_of(page))


def rows(page: Path, *, after: str) -> list[list[str]]:
    """The cells of the first table below a heading, without its head."""
    lines = f"\n{text_of(page)}".split(f"\n{after}\n", 1)[1].splitlines()
    table: list[list[str]] = []
    for line in lines:
        if line.startswith("|"):
            table.append([cell.strip() for cell in line.strip("|").split("|")])
        elif table:
            break
    return table[2:]


def links(page: Path) -> Iterator[str]:
    """Where a page leads to and what pictures it shows, as written."""
    for found in _LINK.finditer(prose(page)):
        yield found[1] or found[2]


@cache
def anchors(page: Path) -> frozenset[str]:
    """The anchors that headings of a page get."""
    return frozenset(_anchor(heading) for heading in _HEADING.findall(prose(page)))


def _anchor(heading: str) -> str:
    kept = re.sub(r"[^\w\- ]", "", heading.strip().lower())
    return kept.replace(" ", "-")
