"""Texts of the notation, read into items: words, values, choices, repetitions."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

_TOKEN: Final = re.compile(
    r"""
    (?P<condition>@[!\w|<>=.]+) | (?P<made>->) | (?P<text>"[^"]*") | (?P<more>\.\.\.)
    | (?P<field>[a-z_]+): | (?P<call>[a-z_]+) | (?P<node>[A-Z][A-Za-z]*[a-z][A-Za-z]*)
    | (?P<taken>\w+(?:\+\w+)+) | (?P<word>\w+) | (?P<sign>:=|[^\s\w])
    """,
    re.VERBOSE,
)
CONDITION: Final = re.compile(r"(!?)(mariadb|mysql|oracle|any)(?:(>=|<)([\d.]+))?")


# Content of the text ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class WordsItem:
    """Words that are read together."""

    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LookItem:
    """Words of which one, or none, comes next."""

    words: frozenset[str]
    is_not: bool


@dataclass(frozen=True, slots=True)
class CallItem:
    """The call of another rule or reader."""

    name: str


@dataclass(frozen=True, slots=True)
class ValueItem:
    """Value of a field: the node that an item reads, a text or a place."""

    field: str
    item: NotationItem | None
    text: str = ""


@dataclass(frozen=True, slots=True)
class MadeItem:
    """The node that a rule makes, with its verb."""

    name: str
    verb: str


@dataclass(frozen=True, slots=True)
class RepeatedItem:
    """An item that may be there several times."""

    item: NotationItem
    has_commas: bool


@dataclass(frozen=True, slots=True)
class ItemChoice:
    """Alternatives of which one is read, or none."""

    ways: tuple[Alternative, ...]
    may_be_none: bool
    expected: str = ""


@dataclass(frozen=True, slots=True)
class Alternative:
    """Items in a row, and the conditions under which they stand there."""

    items: tuple[NotationItem, ...]
    conditions: tuple[str, ...]


NotationItem = WordsItem | LookItem | CallItem | ValueItem | MadeItem | RepeatedItem | ItemChoice


class NotationText:
    """The tokens of a rule while they are read."""

    __slots__ = ("_index", "_tokens")

    def __init__(self, text: str) -> None:
        self._tokens = [
            (found.lastgroup or "", found[found.lastgroup or 0]) for found in _TOKEN.finditer(text)
        ]
        self._index = 0

    def _next(self) -> str:
        return self._tokens[self._index][1] if self._index < len(self._tokens) else ""

    def _accept(self, text: str) -> bool:
        if self._next() != text:
            return False
        self._index += 1
        return True

    def choice(self, end: str = "") -> ItemChoice:
        """Ways up to a sign."""
        ways, expected = [], ""
        while True:
            if self._next().startswith('"'):
                expected = self._take().strip('"')
            else:
                ways.append(self._way(end))
            if not self._accept("|"):
                break
        if end:
            assert self._accept(end), f"{end} is missing before {self._tokens[self._index :]}"
        return ItemChoice(tuple(ways), end == "]", expected)

    def _take(self) -> str:
        self._index += 1
        return self._tokens[self._index - 1][1]

    def _way(self, end: str) -> Alternative:
        items: list[NotationItem] = []
        conditions: list[str] = []
        while (text := self._next()) not in {"", "|", end}:
            if text[0] == "@" and len(text) > 1:
                conditions.append(self._take()[1:])
                continue
            item = self._item()
            if self._accept("..."):
                item = RepeatedItem(item, has_commas=False)
            elif [each[1] for each in self._tokens[self._index : self._index + 2]] == [",", "..."]:
                self._index += 2
                item = RepeatedItem(item, has_commas=True)
            items.append(item)
        return Alternative(tuple(items), tuple(conditions))

    def _item(self) -> NotationItem:
        kind, text = self._tokens[self._index]
        self._index += 1
        match kind:
            case "field":
                return self._value(text)
            case "call":
                return CallItem(text)
            case "taken":
                return WordsItem(tuple(text.split("+")))
            case "made":
                name = self._take()
                verb = self._take().strip('"') if self._next().startswith('"') else ""
                return MadeItem(name, verb)
        if text == "{":
            return self.choice("}")
        if text == "[":
            return self.choice("]")
        if text in {"&", "!"}:
            words = [self._take()]
            if words == ["{"]:
                words = list(iter(self._take, "}"))
            return LookItem(frozenset(words), text == "!")
        return WordsItem((text,))

    def _value(self, name: str) -> ValueItem:
        text = self._next()
        if text in {"^", "$"} or text.startswith('"'):
            return ValueItem(name, None, self._take())
        return ValueItem(name, self._item())
