"""Readers of which the rules of a notation are put together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields
from functools import cache
from typing import Any, Final

from binlane.statements.sql.parser.cursor import Cursor
from binlane.statements.sql.parser.notation_text import (
    LookItem,
    NotationItem,
)
from binlane.statements.sql.tree.expressions import Node

Fields = dict[str, list[Any]]
"""Values that were read for a node, by the field that they go into."""
Maker = Callable[[Cursor, int, Fields], Node]
"""Makes a node of what was read from a place on up to the cursor."""
Read = Callable[[Cursor, Fields], None]
Test = Callable[[Cursor], bool]
Check = tuple[int, frozenset[str], bool]
"""Number of words ahead, the words that may or must not stand there, and whether they must not."""
MADE: Final = "->"
"""The field that holds what makes the node."""


# Form of a value in its field -------------------------------------------------------------------


@cache
def maker(kind: Any) -> Maker:  # a class of nodes, not hashable to the type checker
    """Give the function that makes nodes of a class."""
    forms = {each.name: _form(str(each.type)) for each in fields(kind)}
    lists = {each.name: () for each in fields(kind) if _is_needed_list(each)}

    def make(cursor: Cursor, at: int, found: Fields) -> Node:
        values = {name: forms[name](given) for name, given in found.items()}
        node: Node = kind(at, cursor.end, **(lists | values))
        return node

    return make


def _is_needed_list(each: Field[Any]) -> bool:
    return each.default is MISSING and str(each.type).startswith("tuple[")


def _form(annotation: str) -> Callable[[list[Any]], Any]:
    for name, form in _FORMS.items():
        if annotation.startswith(name):
            return form
    return lambda values: values[-1]


_FORMS: Final[Mapping[str, Callable[[list[Any]], Any]]] = {
    "bool": lambda values: any(value is not False for value in values),
    "tuple[": tuple,
    "frozenset[": frozenset,
    "dict[": dict,
}


def candidates(
    test: Callable[..., Test | bool], branches: Sequence[Branch], word: str
) -> list[tuple[Test | None, Rule]]:
    """The ways that may begin with a word, and how to be sure; all words tell where one does not."""
    may_be = [each for each in branches if word in each.words or each.differs]
    found: list[tuple[Test | None, Rule]] = []
    for is_whole in (False, True):
        tests = [(test(each.items, word, is_whole=is_whole), each.rule) for each in may_be]
        found = [
            (None if begins is True else begins, rule)
            for begins, rule in tests
            if begins is not False
        ]
        if len(found) < 2:
            break
    return found


def checked(checks: Sequence[Check], word: str | None) -> Test | bool:
    """Give a test of words; checks that a known first word decides are decided now."""
    left = []
    for offset, words, is_not in checks:
        if offset or word is None or (not word and is_not):
            left.append((offset, words, is_not))
        elif (word in words) is is_not:
            return False
    if not left:
        return True
    if len(left) == 1:
        ((offset, words, is_not),) = left
        return lambda cursor: (cursor.words[cursor.index + offset] in words) is not is_not

    def begins(cursor: Cursor) -> bool:
        for offset, words, is_not in left:
            if (cursor.words[cursor.index + offset] in words) is is_not:
                return False
        return True

    return begins


def combined(how: Callable[[Iterable[bool]], bool], tests: Sequence[Test | bool]) -> Test | bool:
    """The test that all, or any, of some hold; those that are known are told now."""
    is_all = how is all
    left = [test for test in tests if not isinstance(test, bool)]
    is_decided = (not is_all) in tests
    if is_decided or not left:
        return is_all != is_decided
    return left[0] if len(left) == 1 else lambda cursor: how(test(cursor) for test in left)


def reads_words(words: tuple[str, ...]) -> Read:
    """Give the reader of words that stand together."""
    first, rest = words[0], words[1:]

    def read(cursor: Cursor, _: Fields) -> None:
        if cursor.words[cursor.index] != first:
            raise cursor.stop(first)
        cursor.index += 1
        for word in rest:
            if cursor.words[cursor.index] != word:
                raise cursor.stop(word)
            cursor.index += 1

    return read


def looks(look: LookItem) -> Read:
    """Give the reader that looks at the next word and reads nothing."""

    def read(cursor: Cursor, _: Fields) -> None:
        if (cursor.words[cursor.index] in look.words) is look.is_not:
            raise cursor.stop("something else" if look.is_not else " or ".join(sorted(look.words)))

    return read


def puts(name: str, text: str) -> Read:
    """Give the reader that puts a text or a place into a field."""
    if text == "^":
        return lambda cursor, found: found.setdefault(name, []).append(cursor.start)
    if text == "$":
        return lambda cursor, found: found.setdefault(name, []).append(cursor.end)
    value = text.strip('"')
    return lambda _, found: found.setdefault(name, []).append(value)


def makes_node(make: Maker, verb: str) -> Read:
    """Give the reader that says which node the rule makes."""

    def read(_: Cursor, found: Fields) -> None:
        found[MADE] = [make]
        if verb:
            found["verb"] = [verb]

    return read


class Rule:
    """A rule of a server, or a way of a choice; it is translated when it is first read.

    Attributes:
        read: Reads it as a part of another one.
    """

    __slots__ = ("_translate", "read")

    def __init__(self, translate: Callable[[], Read]) -> None:
        self._translate = translate
        self.read: Read = self._read_first

    def _read_first(self, cursor: Cursor, found: Fields) -> None:
        self.read = self._translate()
        self.read(cursor, found)

    def inside(self, cursor: Cursor, found: Fields) -> None:
        """Read it as it is then: `read` becomes another one."""
        self.read(cursor, found)

    def node(self, cursor: Cursor) -> Any:
        """Read it, and give what it becomes.

        Raises:
            Stopped: Where the text is not what it says.
        """
        found: Fields = {}
        at = cursor.start
        self.read(cursor, found)
        make: Maker = found.pop(MADE)[-1]
        return make(cursor, at, found)


@dataclass(frozen=True, slots=True)
class Branch:
    """A way of a choice.

    Attributes:
        items: Items of the way, in their order.
        words: Words with which the way may begin.
        differs: True if the way may also begin with none of these words.
        rule: Rule that reads the way.
    """

    items: tuple[NotationItem, ...]
    words: frozenset[str]
    differs: bool
    rule: Rule
