"""What a person sees of a page: its words, its links, its buttons."""

from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Protocol

_UNSEEN = {"script", "style", "template", "datalist"}
_GLUED = {"a", "i", "span", "time", "code", "label"}
"""Elements that stand within a word or sentence; all others stand apart from what is around them."""
_LINES = {"ln", "sub"}
"""Classes of spans that are lines of their own."""
_VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}


@dataclass
class Seen(HTMLParser):
    """A page as it is read."""

    texts: list[str] = field(default_factory=list)
    links: dict[str, str] = field(default_factory=dict)
    """Words of a link → its address; the last one wins."""
    tags: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    _open: list[str] = field(default_factory=list)
    _link: tuple[str, list[str]] | None = None

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        self.tags.append((tag, attributes))
        self._stand_apart("ln" if attributes.get("class", "").split(" ")[0] in _LINES else tag)
        if tag == "a":
            self._link = (attributes.get("href", ""), [attributes.get("aria-label", "")])
        if attributes.get("aria-label") and attributes.get("role") == "img":
            self.texts.append(attributes["aria-label"])
        if tag not in _VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        self._stand_apart(tag)
        if tag == "a" and self._link is not None:
            address, words = self._link
            self.links[" ".join("".join(words).split())] = address
            self._link = None
        while self._open and self._open.pop() != tag:
            pass

    def _stand_apart(self, tag: str) -> None:
        if tag not in _GLUED:
            self.texts.append(" ")

    def handle_data(self, data: str) -> None:
        if _UNSEEN.isdisjoint(self._open):
            self.texts.append(data)
            if self._link is not None:
                self._link[1].append(data)

    @property
    def words(self) -> str:
        """All text, blanks folded."""
        return " ".join("".join(self.texts).split())

    def attributes(self, tag: str) -> list[dict[str, str]]:
        """The attributes of every element of a kind."""
        return [attributes for name, attributes in self.tags if name == tag]


class Answer(Protocol):
    """An answer with a body."""

    @property
    def content(self) -> bytes: ...


def seen(response: Answer | str) -> Seen:
    """The page of an answer."""
    page = Seen()
    page.feed(response if isinstance(response, str) else response.content.decode())
    return page
