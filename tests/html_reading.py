"""Reads a page as strictly as its writer should write it."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Final, Self

_VOID: Final = {"meta", "link", "br", "hr", "img", "input"}
_VOID_IN_SVG: Final = {"rect", "path"}


@dataclass
class Element:
    """One element.

    Attributes:
        tag: Its name.
        attributes: By name.
        text: Of it and all in it.
        parents: Names of those around it, the outermost first.
    """

    tag: str
    attributes: dict[str, str]
    parents: tuple[str, ...]
    text: str = ""


@dataclass
class _Reader(HTMLParser):
    elements: list[Element] = field(default_factory=list)
    open: list[Element] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), f"{tag}: an attribute twice: {names}"
        parents = tuple(element.tag for element in self.open)
        element = Element(tag, {name: value or "" for name, value in attrs}, parents)
        self.elements.append(element)
        if tag not in _VOID:
            self.open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in _VOID_IN_SVG, f"<{tag}/>"
        self.handle_starttag(tag, attrs)
        self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> ends nothing"
        assert self.open.pop().tag == tag, f"</{tag}> stands elsewhere"

    def handle_data(self, data: str) -> None:
        for element in self.open:
            element.text += data


@dataclass
class Page:
    """What a page holds.

    Attributes:
        elements: In order.
    """

    elements: list[Element]

    @classmethod
    def read(cls, source: str) -> Self:
        """Read a page.

        Raises:
            AssertionError: If elements are not closed in order, or an attribute or id is there twice.
        """
        reader = _Reader()
        reader.feed(source)
        reader.close()
        assert not reader.open, f"not closed: {[element.tag for element in reader.open]}"
        ids = [each.attributes["id"] for each in reader.elements if "id" in each.attributes]
        assert len(ids) == len(set(ids)), "an id is there twice"
        return cls(reader.elements)

    def all(self, tag: str, class_: str = "") -> list[Element]:
        """The elements of a name, and of a class where one is given."""
        return [
            each
            for each in self.elements
            if each.tag == tag
            and (not class_ or class_ in each.attributes.get("class", "").split())
        ]

    def fact(self, term: str) -> list[str]:
        """What stands for a term in the lists of facts."""
        found = []
        for one, following in zip(self.elements, self.elements[1:], strict=False):
            if one.tag == "dt" and one.text == term:
                assert following.tag == "dd"
                found.append(following.text)
        return found
