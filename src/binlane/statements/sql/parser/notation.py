"""Grammar as text: what its signs mean, and how readers are made of it.

A grammar is lines `rule = what stands there`; lines that are indented go on. Its signs are those of
the servers' manuals, with the fields of the tree before what goes into them:

    WORD  ( ) , = …   these words and signs
    rule              what that rule, or the reader of that name, reads
    [ a ]  [ a | b ]  a, b or nothing
    { a | b | "c" }   a or b; who finds neither is told that c was expected
    a ...             once or more often; [a ...] as often as it comes
    a, ...            once or more often, with commas between
    A+B               taken only if both come next; else the first word decides
    &A  !A            only if A comes next, or does not, which stays unread; &{A B}: any of them
    @mariadb>=10.5    only of that server and version; @a|b of either, @!a not of that one
    @oracle @any      only in that sql_mode; only of a server that nobody has named
    field:a           what a reads goes into that field
    field:"TEXT"      that text goes into it
    field:^ field:$   where what comes next begins, where what came before ends
    -> Node "VERB"    all that becomes this node, by whose fields values take their form

A value is a reader's, the node of a rule that says what it becomes, or else the words that were
read. A field that is a tuple or set takes several, a field that is a truth that there was one.
A rule that is in no field and gives no value stands for its text.

Rules are translated for a server and version when they are first used: one dictionary of first
words for each choice, as one branch each in a reader written by hand.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from binlane.statements.sql.parser.cursor import Cursor
from binlane.statements.sql.parser.notation_readers import (
    Branch,
    Check,
    Fields,
    Maker,
    Read,
    Rule,
    Test,
    candidates,
    checked,
    combined,
    looks,
    maker,
    makes_node,
    puts,
    reads_words,
)
from binlane.statements.sql.parser.notation_text import (
    CONDITION,
    Alternative,
    CallItem,
    ItemChoice,
    LookItem,
    MadeItem,
    NotationItem,
    NotationText,
    RepeatedItem,
    ValueItem,
    WordsItem,
)
from binlane.statements.sql.servers import Dialect
from binlane.statements.sql.tree.expressions import Node

_TOLD_MAX: Final = 6
"""Words that are told where none of them was found."""


@dataclass(frozen=True, slots=True)
class Reader:
    """A reader that is no rule.

    Attributes:
        read: Reads, and gives the value.
        name: Description of the text that it reads, for error messages.
        begins: Tells if such a text comes next; None where nothing else can.
    """

    read: Callable[[Cursor], Any]
    name: str
    begins: Test | None = None


# Readers of rules ------------------------------------------------------------------------------


class Notation:
    """The rules of one grammar, for all servers.

    Attributes:
        readers: Readers that rules name, and that are no rules.
        makers: Makers of nodes that no class makes alone, and the classes, by name.
    """

    def __init__(
        self,
        texts: Sequence[str],
        readers: Mapping[str, Reader],
        makers: Mapping[str, Maker | type[Node]],
    ) -> None:
        self.readers = readers
        self.makers = makers
        self._texts: dict[str, str] = {}
        for name, text in _split(texts):
            assert name not in {*self._texts, *readers}, f"two rules are called {name}"
            self._texts[name] = text
        self._parsed: dict[str, ItemChoice] = {}
        self._translated: dict[tuple[object, ...], _Rules] = {}

    def of(self, dialect: Dialect) -> _Rules:
        """The rules that a server has."""
        key = dialect.flavor, dialect.version, dialect.is_oracle
        rules = self._translated.get(key)
        if rules is None:
            rules = self._translated[key] = _Rules(self, dialect)
        return rules

    def parsed(self, name: str) -> ItemChoice:
        """Give the choice of ways that a rule's text stands for."""
        if name not in self._parsed:
            self._parsed[name] = NotationText(self._texts[name]).choice()
        return self._parsed[name]

    @property
    def names(self) -> Collection[str]:
        """Names of the rules."""
        return self._texts.keys()


def _split(texts: Sequence[str]) -> Iterator[tuple[str, str]]:
    for text in texts:
        for part in re.split(r"\n(?=\w+ =)", re.sub(r"(?m)#.*$", "", text)):
            name, _, body = part.partition("=")
            if name.strip():
                yield name.strip(), body


class _Rules:
    """Translates the rules of one server, each when it is first read."""

    def __init__(self, notation: Notation, dialect: Dialect) -> None:
        self._notation = notation
        self._readers = notation.readers
        self._dialect = dialect
        self._rules: dict[str, Rule] = {}
        self._ways_known: dict[int, tuple[Alternative, ...]] = {}
        self._firsts_known: dict[int, tuple[frozenset[str], bool, bool]] = {}

    def rule(self, name: str) -> Rule:
        """The rule of a name."""
        if name not in self._rules:
            self._rules[name] = Rule(lambda: self._choice(self._notation.parsed(name)))
        return self._rules[name]

    def translate_all(self) -> None:
        """Translate every rule to its last word, which shows whether all that they name is there."""
        for name in self._notation.names:
            for way in self._ways(self._notation.parsed(name)):
                self._test(way.items, None, is_whole=True)
                self._way(way.items)

    def _has_made(self, item: NotationItem) -> bool:
        """True if an item, or a rule that stands in it for its text, names the node that it becomes."""
        if isinstance(item, CallItem) and item.name not in self._readers:
            return self._has_made(self._notation.parsed(item.name))
        if isinstance(item, ItemChoice):
            return any(self._has_made(one) for way in item.ways for one in way.items[::-1])
        return isinstance(item, MadeItem)

    # Conditions ---------------------------------------------------------------------------------

    def _ways(self, choice: ItemChoice) -> tuple[Alternative, ...]:
        """The ways that the server has; those of a rule that is one of them alone stand for it."""
        known = self._ways_known.get(id(choice))
        if known is None:
            found: list[Alternative] = []
            for way in choice.ways:
                if all(map(self._holds, way.conditions)):
                    inner = self._inner(way)
                    found += (way,) if inner is None else self._ways(inner)
            known = self._ways_known[id(choice)] = tuple(found)
        return known

    def _inner(self, way: Alternative) -> ItemChoice | None:
        match way.items:
            case (ItemChoice(may_be_none=False, expected="") as inner,):
                return inner
            case (CallItem(name=name),) if name not in self._readers:
                return self._notation.parsed(name)
        return None

    def _holds(self, condition: str) -> bool:
        return any(self._holds_one(one) for one in condition.split("|"))

    def _holds_one(self, condition: str) -> bool:
        found = CONDITION.fullmatch(condition)
        assert found, condition
        is_not, name, sign, number = found.groups()
        dialect = self._dialect
        if name in {"oracle", "any"}:
            return (dialect.is_oracle if name == "oracle" else not dialect.flavor) != bool(is_not)
        version = tuple(int(part) for part in (number or "0").split("."))
        if sign == "<":
            return dialect.flavor in {"", name} and (
                not dialect.flavor or dialect.version < version
            )
        has = dialect.has_mariadb if name == "mariadb" else dialect.has_mysql
        return has(*version) != bool(is_not)

    # First words ----------------------------------------------------------------------------------

    def _firsts(self, items: Sequence[NotationItem]) -> tuple[frozenset[str], bool]:
        """Words with which items may begin, and whether they may do without any of these."""
        words: frozenset[str] = frozenset()
        differs = False
        for item in items:
            found, may_differ, may_be_empty = self._firsts_of(item)
            words |= found
            differs |= may_differ
            if not may_be_empty:
                return words, differs
        return words, True

    def _firsts_of(self, item: NotationItem) -> tuple[frozenset[str], bool, bool]:
        """Give the first words of one item, whether it may begin otherwise, and whether it may be empty."""
        match item:
            case WordsItem():
                return frozenset(item.words[:1]), False, False
            case LookItem(is_not=False):
                return item.words, False, False
            case CallItem() if item.name in self._readers:
                return frozenset(), True, False
            case CallItem():
                return self._firsts_of(self._notation.parsed(item.name))
            case ValueItem(item=inner) if inner is not None:
                return self._firsts_of(inner)
            case RepeatedItem():
                return self._firsts_of(item.item)
            case ItemChoice():
                known = self._firsts_known.get(id(item))
                if known is None:
                    known = self._firsts_known[id(item)] = self._firsts_of_choice(item)
                return known
        return frozenset(), False, True

    def _firsts_of_choice(self, choice: ItemChoice) -> tuple[frozenset[str], bool, bool]:
        ways = self._ways(choice)
        each = [self._firsts(way.items) for way in ways]
        may_be_empty = choice.may_be_none or any(
            all(self._firsts_of(item)[2] for item in way.items) for way in ways
        )
        words = frozenset().union(*(found for found, _ in each))
        return words, any(differs for _, differs in each), may_be_empty

    def _test(
        self, items: Sequence[NotationItem], word: str | None, *, is_whole: bool
    ) -> Test | bool:
        """Give a test that tells if items come next; True or False if that is known now.

        Args:
            items: Items in a row, first to last.
            word: The word that comes next, if it is known; empty for one with which none begins.
            is_whole: True to test all words that begin the items, not the first alone.
        """
        checks: list[Check] = []
        offset = 0
        for number, item in enumerate(items):
            inner = item.item if isinstance(item, ValueItem) else item
            if inner is None or isinstance(inner, MadeItem):
                continue
            if isinstance(inner, LookItem):
                checks.append((offset, inner.words, inner.is_not))
                continue
            words = self._single_words(inner)
            if not words and not offset:
                rest = items[number + 1 :]
                begins = self._test_of(inner, rest, word, is_whole=is_whole)
                return combined(all, (checked(checks, word), begins))
            if not words or (offset and not is_whole):
                break
            for one in words:
                checks.append((offset, one, False))
                offset += 1
        return checked(checks, word)

    def _single_words(self, item: NotationItem) -> tuple[frozenset[str], ...]:
        """The words that an item is, one after the other, if it is no more than these."""
        if isinstance(item, WordsItem):
            return tuple(frozenset((word,)) for word in item.words)
        if not isinstance(item, ItemChoice) or item.may_be_none:
            return ()
        found: set[str] = set()
        for way in self._ways(item):
            match way.items:
                case (WordsItem(words=(word,)),):
                    found.add(word)
                case _:
                    return ()
        return (frozenset(found),)

    def _test_of(
        self, item: NotationItem, rest: Sequence[NotationItem], word: str | None, *, is_whole: bool
    ) -> Test | bool:
        """The test of what begins with a choice, a rule or a reader."""
        if isinstance(item, CallItem) and item.name in self._readers:
            return self._readers[item.name].begins or True
        if isinstance(item, RepeatedItem):
            return self._test((item.item, *rest), word, is_whole=is_whole)
        choice = self._notation.parsed(item.name) if isinstance(item, CallItem) else item
        assert isinstance(choice, ItemChoice)
        tests = [self._test(way.items, word, is_whole=is_whole) for way in self._ways(choice)]
        if choice.may_be_none:
            tests.append(self._test(rest, word, is_whole=is_whole))
        return combined(any, tests)

    # Readers of items -----------------------------------------------------------------------------

    def _way(self, items: Sequence[NotationItem]) -> Read:
        reads: list[Read] = []
        words: tuple[str, ...] = ()
        for item in items:
            if isinstance(item, WordsItem):
                words += item.words
                continue
            if words:
                reads.append(reads_words(words))
                words = ()
            reads.append(self._item(item))
        if words:
            reads.append(reads_words(words))
        if len(reads) == 1:
            return reads[0]
        if len(reads) == 2:
            first, second = reads

            def read_two(cursor: Cursor, found: Fields) -> None:
                first(cursor, found)
                second(cursor, found)

            return read_two

        def read(cursor: Cursor, found: Fields) -> None:
            for one in reads:
                one(cursor, found)

        return read

    def _item(self, item: NotationItem) -> Read:
        match item:
            case WordsItem():
                return reads_words(item.words)
            case LookItem():
                return looks(item)
            case CallItem() if item.name in self._readers:
                reader = self._readers[item.name].read
                return lambda cursor, _: reader(cursor)
            case CallItem():
                return self.rule(item.name).inside
            case ValueItem():
                return self._value(item)
            case MadeItem():
                made = self._notation.makers[item.name]
                make = maker(made) if isinstance(made, type) else made
                return makes_node(make, item.verb)
            case RepeatedItem():
                return self._more(item)
            case ItemChoice():
                return self._choice(item)

    def _value(self, value: ValueItem) -> Read:
        field_name, item = value.field, value.item
        if item is None:
            return puts(field_name, value.text)
        get = self._got(item)
        if get is not None:

            def read_value(cursor: Cursor, found: Fields) -> None:
                one = get(cursor)
                if field_name in found:
                    found[field_name].append(one)
                else:
                    found[field_name] = [one]

            return read_value
        read = self._item(item)

        def read_words(cursor: Cursor, found: Fields) -> None:
            index = cursor.index
            read(cursor, found)
            if cursor.index != index:
                words = " ".join(cursor.words[index : cursor.index])
                found.setdefault(field_name, []).append(words)

        return read_words

    def _got(self, item: NotationItem) -> Callable[[Cursor], Any] | None:
        """Give a reader of an item that has a value of its own; None for other items."""
        if not isinstance(item, CallItem):
            return None
        if item.name in self._readers:
            return self._readers[item.name].read
        return self.rule(item.name).node if self._has_made(item) else None

    def _more(self, item: RepeatedItem) -> Read:
        read = self._item(item.item)
        if item.has_commas:

            def read_list(cursor: Cursor, found: Fields) -> None:
                read(cursor, found)
                while cursor.words[cursor.index] == ",":
                    cursor.index += 1
                    read(cursor, found)

            return read_list
        begins = self._test((item.item,), None, is_whole=False)
        assert not isinstance(begins, bool), f"nothing ends what is repeated: {item}"

        def read_all(cursor: Cursor, found: Fields) -> None:
            read(cursor, found)
            while begins(cursor):
                read(cursor, found)

        return read_all

    def _choice(self, choice: ItemChoice) -> Read:
        ways = self._ways(choice)
        if len(ways) == 1 and not choice.may_be_none and not choice.expected:
            return self._way(ways[0].items)
        branches = [
            Branch(way.items, *self._firsts(way.items), Rule(partial(self._way, way.items)))
            for way in ways
        ]
        words = frozenset[str]().union(*(each.words for each in branches))
        table: dict[str, Sequence[tuple[Test | None, Rule]]] = {}

        def candidates_for(word: str) -> Sequence[tuple[Test | None, Rule]]:
            word = word if word in words else ""
            if word not in table:
                table[word] = candidates(self._test, branches, word)
            return table[word]

        def stop(cursor: Cursor, found: Fields) -> None:
            # The way that its first word says tells better what is wrong.
            word = cursor.words[cursor.index]
            likely = next((each.rule for each in branches if word in each.words), None)
            if likely is None:
                raise cursor.stop(self._expected(choice) or self._told(ways, words))
            likely.read(cursor, found)

        def read(cursor: Cursor, found: Fields) -> None:
            word = cursor.words[cursor.index]
            candidates = table.get(word)
            for begins, rule in candidates_for(word) if candidates is None else candidates:
                if begins is None or begins(cursor):
                    rule.read(cursor, found)
                    return
            if not choice.may_be_none:
                stop(cursor, found)

        return read

    def _expected(self, choice: ItemChoice) -> str:
        """Give the expectation that a choice states itself, or a rule whose ways stand in it."""
        inner = filter(None, map(self._inner, choice.ways))
        return choice.expected or next(filter(None, map(self._expected, inner)), "")

    def _told(self, ways: Sequence[Alternative], words: frozenset[str]) -> str:
        """Describe the texts that some ways begin with: words, and names of readers."""
        told = sorted(words)
        for way in ways:
            inner = [each.item if isinstance(each, ValueItem) else each for each in way.items]
            first = next((each for each in inner if not isinstance(each, LookItem | None)), None)
            if isinstance(first, CallItem) and first.name in self._readers:
                told.append(self._readers[first.name].name)
        return " or ".join([*told[:_TOLD_MAX], *["…"] * (len(told) > _TOLD_MAX)])
