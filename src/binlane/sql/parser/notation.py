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
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields
from functools import cache
from typing import Any, Final

from binlane.sql.dialect import Dialect
from binlane.sql.parser.cursor import Cursor
from binlane.sql.tree.node import Node

Fields = dict[str, list[Any]]
"""What was read for a node, by the field it goes into."""
Maker = Callable[[Cursor, int, Fields], Node]
"""Makes a node of what was read from a place on up to the cursor."""
_Read = Callable[[Cursor, Fields], None]
_Test = Callable[[Cursor], bool]
_Check = tuple[int, frozenset[str], bool]
"""How far ahead a word is, which ones it may be, or which it may not be."""

_MADE: Final = "->"
"""The field that holds what makes the node."""
_TOKEN: Final = re.compile(
    r"""
    (?P<condition>@[!\w|<>=.]+) | (?P<made>->) | (?P<text>"[^"]*") | (?P<more>\.\.\.)
    | (?P<field>[a-z_]+): | (?P<call>[a-z_]+) | (?P<node>[A-Z][A-Za-z]*[a-z][A-Za-z]*)
    | (?P<taken>\w+(?:\+\w+)+) | (?P<word>\w+) | (?P<sign>:=|[^\s\w])
    """,
    re.VERBOSE,
)
_CONDITION: Final = re.compile(r"(!?)(mariadb|mysql|oracle|any)(?:(>=|<)([\d.]+))?")
_TOLD_MAX: Final = 6
"""Words that are told where none of them was found; of more the rule's name is."""


@dataclass(frozen=True, slots=True)
class Reader:
    """A reader that is no rule.

    Attributes:
        read: Reads, and gives the value.
        name: What it reads, for who finds something else.
        begins: Whether it comes next; None where nothing else can.
    """

    read: Callable[[Cursor], Any]
    name: str
    begins: _Test | None = None


# What the text says -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Words:
    """Words that are read together."""

    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Look:
    """Words of which one, or none, comes next."""

    words: frozenset[str]
    is_not: bool


@dataclass(frozen=True, slots=True)
class _Call:
    name: str


@dataclass(frozen=True, slots=True)
class _Value:
    """What goes into a field: what an item reads, a text or a place."""

    field: str
    item: _Item | None
    text: str = ""


@dataclass(frozen=True, slots=True)
class _Made:
    name: str
    verb: str


@dataclass(frozen=True, slots=True)
class _More:
    item: _Item
    has_commas: bool


@dataclass(frozen=True, slots=True)
class _Choice:
    ways: tuple[_Way, ...]
    may_be_none: bool
    expected: str = ""


@dataclass(frozen=True, slots=True)
class _Way:
    """Items in a row, and the conditions under which they stand there."""

    items: tuple[_Item, ...]
    conditions: tuple[str, ...]


_Item = _Words | _Look | _Call | _Value | _Made | _More | _Choice


class _Text:
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

    def choice(self, end: str = "") -> _Choice:
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
        return _Choice(tuple(ways), end == "]", expected)

    def _take(self) -> str:
        self._index += 1
        return self._tokens[self._index - 1][1]

    def _way(self, end: str) -> _Way:
        items: list[_Item] = []
        conditions: list[str] = []
        while (text := self._next()) not in {"", "|", end}:
            if text[0] == "@" and len(text) > 1:
                conditions.append(self._take()[1:])
                continue
            item = self._item()
            if self._accept("..."):
                item = _More(item, has_commas=False)
            elif [each[1] for each in self._tokens[self._index : self._index + 2]] == [",", "..."]:
                self._index += 2
                item = _More(item, has_commas=True)
            items.append(item)
        return _Way(tuple(items), tuple(conditions))

    def _item(self) -> _Item:
        kind, text = self._tokens[self._index]
        self._index += 1
        match kind:
            case "field":
                return self._value(text)
            case "call":
                return _Call(text)
            case "taken":
                return _Words(tuple(text.split("+")))
            case "made":
                name = self._take()
                verb = self._take().strip('"') if self._next().startswith('"') else ""
                return _Made(name, verb)
        if text == "{":
            return self.choice("}")
        if text == "[":
            return self.choice("]")
        if text in {"&", "!"}:
            words = [self._take()]
            if words == ["{"]:
                words = list(iter(self._take, "}"))
            return _Look(frozenset(words), text == "!")
        return _Words((text,))

    def _value(self, name: str) -> _Value:
        text = self._next()
        if text in {"^", "$"} or text.startswith('"'):
            return _Value(name, None, self._take())
        return _Value(name, self._item())


# How a value takes the form of its field ---------------------------------------------------------


@cache
def maker(kind: Any) -> Maker:  # a class of nodes, not hashable to the type checker
    """What makes nodes of a class."""
    forms = {each.name: _form(str(each.type)) for each in fields(kind)}
    lists = {each.name: () for each in fields(kind) if _is_needed_list(each)}

    def make(cursor: Cursor, at: int, found: Fields) -> Node:
        values = {name: forms[name](given) for name, given in found.items() if name != _MADE}
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


# Readers of rules ------------------------------------------------------------------------------


class Notation:
    """The rules of one grammar, for all servers.

    Attributes:
        readers: Those that rules name, and that are none.
        makers: Of nodes that no class makes alone, and the classes, by name.
    """

    def __init__(
        self,
        texts: Sequence[str],
        readers: Mapping[str, Reader],
        makers: Mapping[str, Maker | type[Node]],
    ) -> None:
        self.readers = readers
        self.makers = makers
        self._texts = dict(_split(texts))
        self._parsed: dict[str, _Choice] = {}
        self._translated: dict[tuple[object, ...], _Rules] = {}

    def of(self, dialect: Dialect) -> _Rules:
        """The rules that a server has."""
        key = dialect.flavor, dialect.version, dialect.is_oracle
        rules = self._translated.get(key)
        if rules is None:
            rules = self._translated[key] = _Rules(self, dialect)
        return rules

    def parsed(self, name: str) -> _Choice:
        """What a rule says."""
        if name not in self._parsed:
            self._parsed[name] = _Text(self._texts[name]).choice()
        return self._parsed[name]

    def has(self, name: str) -> bool:
        """Whether there is a rule of a name."""
        return name in self._texts


def _split(texts: Sequence[str]) -> Iterator[tuple[str, str]]:
    for text in texts:
        for part in re.split(r"\n(?=\w+ =)", re.sub(r"(?m)#.*$", "", text)):
            name, _, body = part.partition("=")
            if name.strip():
                yield name.strip(), body


@dataclass(slots=True)
class Rule:
    """A rule of a server.

    Attributes:
        name: Its own.
        read: Reads it as a part of another one.
        makes: It gives a node.
    """

    name: str
    read: _Read
    makes: bool

    def inside(self, cursor: Cursor, found: Fields) -> None:
        """Read it as a part of another one: at first use `read` is another than later."""
        self.read(cursor, found)

    def node(self, cursor: Cursor) -> Any:
        """Read it, and give what it becomes.

        Raises:
            Stopped: Where the text is not what it says.
        """
        found: Fields = {}
        at = cursor.start
        self.read(cursor, found)
        make: Maker = found[_MADE][-1]
        return make(cursor, at, found)


class _Rules:
    """Translates the rules of one server, each when it is first read."""

    def __init__(self, grammar: Notation, dialect: Dialect) -> None:
        self._grammar = grammar
        self._dialect = dialect
        self._rules: dict[str, Rule] = {}

    def rule(self, name: str) -> Rule:
        """The rule of a name."""
        found = self._rules.get(name)
        if found is None:
            found = self._rules[name] = Rule(name, self._at_first_use(name), self._makes(name))
        return found

    def _at_first_use(self, name: str) -> _Read:
        def read(cursor: Cursor, found: Fields) -> None:
            rule = self._rules[name]
            rule.read = self._choice(self._grammar.parsed(name), name)
            rule.read(cursor, found)

        return read

    def _makes(self, name: str) -> bool:
        return self._has_made(self._grammar.parsed(name), {name})

    def _has_made(self, choice: _Choice, known: set[str]) -> bool:
        """Whether a choice, or a rule that stands in it for its text, says what it becomes."""
        for item in (item for way in choice.ways for item in way.items):
            inner = item
            if isinstance(item, _Call) and item.name not in {*known, *self._grammar.readers}:
                known.add(item.name)
                inner = self._grammar.parsed(item.name)
            if isinstance(inner, _Made) or (
                isinstance(inner, _Choice) and self._has_made(inner, known)
            ):
                return True
        return False

    # Conditions ---------------------------------------------------------------------------------

    def _ways(self, choice: _Choice) -> list[_Way]:
        return [way for way in choice.ways if all(map(self._holds, way.conditions))]

    def _holds(self, condition: str) -> bool:
        return any(self._holds_one(one) for one in condition.split("|"))

    def _holds_one(self, condition: str) -> bool:
        found = _CONDITION.fullmatch(condition)
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

    # What may come first --------------------------------------------------------------------------

    def _firsts(self, items: Sequence[_Item]) -> tuple[frozenset[str], bool]:
        """Words with which items may begin, and whether they may do without any of these."""
        words: frozenset[str] = frozenset()
        for item in items:
            found, may_differ, may_be_empty = self._firsts_of(item)
            words |= found
            if not may_be_empty:
                return words, may_differ
            if may_differ:
                return words, True
        return words, True

    def _firsts_of(self, item: _Item) -> tuple[frozenset[str], bool, bool]:
        match item:
            case _Words():
                return frozenset(item.words[:1]), False, False
            case _Look(is_not=False):
                return item.words, False, False
            case _Call() if item.name in self._grammar.readers:
                return frozenset(), True, False
            case _Call():
                return self._firsts_of(self._grammar.parsed(item.name))
            case _Value(item=inner) if inner is not None:
                return self._firsts_of(inner)
            case _More():
                return self._firsts_of(item.item)
            case _Choice():
                each = [self._firsts(way.items) for way in self._ways(item)]
                words = frozenset().union(*(found for found, _ in each))
                may_be_empty = item.may_be_none or any(
                    all(self._firsts_of(one)[2] for one in way.items) for way in self._ways(item)
                )
                return words, any(may_differ for _, may_differ in each), may_be_empty
        return frozenset(), False, True

    def _test(self, items: Sequence[_Item], *, is_whole: bool) -> _Test | None:
        """Whether items come next, by their first word or all that begin them; None: always."""
        checks: list[_Check] = []
        offset = 0
        for item in items:
            inner = item.item if isinstance(item, _Value) else item
            if inner is None or isinstance(inner, _Made):
                continue
            if isinstance(inner, _Words):
                if offset and not is_whole:
                    break
                for word in inner.words:
                    checks.append((offset, frozenset((word,)), False))
                    offset += 1
            elif isinstance(inner, _Look):
                checks.append((offset, inner.words, inner.is_not))
            elif words := self._single_words(inner):
                if offset and not is_whole:
                    break
                checks.append((offset, words, False))
                offset += 1
            elif not offset:
                rest = items[items.index(item) + 1 :]
                return self._test_of(inner, rest, checks, is_whole=is_whole)
            else:
                break
        return _checked(checks)

    def _single_words(self, item: _Item) -> frozenset[str]:
        if not isinstance(item, _Choice) or item.may_be_none:
            return frozenset()
        found: set[str] = set()
        for way in self._ways(item):
            match way.items:
                case (_Words(words=(word,)),):
                    found.add(word)
                case _:
                    return frozenset()
        return frozenset(found)

    def _test_of(
        self, item: _Item, rest: Sequence[_Item], checks: Sequence[_Check], *, is_whole: bool
    ) -> _Test | None:
        """The test of what begins with a choice, a rule or a reader."""
        looked = _checked(checks) if checks else None
        if isinstance(item, _Call) and item.name in self._grammar.readers:
            begins = self._grammar.readers[item.name].begins
        elif isinstance(item, _More):
            return self._test((item.item, *rest), is_whole=is_whole)
        else:
            choice = self._grammar.parsed(item.name) if isinstance(item, _Call) else item
            assert isinstance(choice, _Choice)
            tests = [self._test(way.items, is_whole=is_whole) for way in self._ways(choice)]
            if choice.may_be_none:
                tests.append(self._test(rest, is_whole=is_whole))
            begins = _any_of(tests)
        if looked is None or begins is None:
            return begins or looked
        return lambda cursor: looked(cursor) and begins(cursor)

    # Readers of items -----------------------------------------------------------------------------

    def _way(self, items: Sequence[_Item], name: str) -> _Read:
        reads = [self._item(item, name) for item in items]
        if len(reads) == 1:
            return reads[0]

        def read(cursor: Cursor, found: Fields) -> None:
            for one in reads:
                one(cursor, found)

        return read

    def _item(self, item: _Item, name: str) -> _Read:
        match item:
            case _Words():
                return _reads_words(item.words)
            case _Look():
                return _looks(item)
            case _Call() if item.name in self._grammar.readers:
                reader = self._grammar.readers[item.name].read
                return lambda cursor, _: reader(cursor)
            case _Call():
                rule = self.rule(item.name)
                return rule.inside
            case _Value():
                return self._value(item, name)
            case _Made():
                made = self._grammar.makers[item.name]
                make = maker(made) if isinstance(made, type) else made
                return _makes_node(make, item.verb)
            case _More():
                return self._more(item, name)
            case _Choice():
                return self._choice(item, name)

    def _value(self, value: _Value, name: str) -> _Read:
        field_name, item = value.field, value.item
        if item is None:
            return _puts(field_name, value.text)
        get = self._got(item)
        if get is not None:

            def read_value(cursor: Cursor, found: Fields) -> None:
                one = get(cursor)
                if field_name in found:
                    found[field_name].append(one)
                else:
                    found[field_name] = [one]

            return read_value
        read = self._item(item, name)

        def read_words(cursor: Cursor, found: Fields) -> None:
            index = cursor.index
            read(cursor, found)
            if cursor.index != index:
                words = " ".join(cursor.words[index : cursor.index])
                found.setdefault(field_name, []).append(words)

        return read_words

    def _got(self, item: _Item) -> Callable[[Cursor], Any] | None:
        """What gives a value of its own."""
        if not isinstance(item, _Call):
            return None
        if item.name in self._grammar.readers:
            return self._grammar.readers[item.name].read
        rule = self.rule(item.name)
        return rule.node if rule.makes else None

    def _more(self, item: _More, name: str) -> _Read:
        read = self._item(item.item, name)
        if item.has_commas:

            def read_list(cursor: Cursor, found: Fields) -> None:
                read(cursor, found)
                while cursor.words[cursor.index] == ",":
                    cursor.index += 1
                    read(cursor, found)

            return read_list
        begins = self._test((item.item,), is_whole=False)
        assert begins is not None, f"{name}: nothing ends what is repeated"

        def read_all(cursor: Cursor, found: Fields) -> None:
            read(cursor, found)
            while begins(cursor):
                read(cursor, found)

        return read_all

    def _choice(self, choice: _Choice, name: str) -> _Read:
        ways = self._ways(choice)
        if len(ways) == 1 and not choice.may_be_none and not choice.expected:
            return self._way(ways[0].items, name)
        firsts = [self._firsts(way.items) for way in ways]
        reads = [self._way(way.items, name) for way in ways]
        words = frozenset().union(*(found for found, _ in firsts))
        table = {word: self._candidates(ways, firsts, reads, word) for word in words}
        others = self._candidates(ways, firsts, reads, "")
        likely = {word: reads[n] for n in reversed(range(len(ways))) for word in firsts[n][0]}
        may_be_none = choice.may_be_none
        stops = _stops(choice.expected or self._told(ways, words, name))

        def read(cursor: Cursor, found: Fields) -> None:
            for begins, one in table.get(cursor.words[cursor.index], others):
                if begins is None or begins(cursor):
                    one(cursor, found)
                    return
            if not may_be_none:
                # The way that its first word says tells better what is wrong.
                likely.get(cursor.words[cursor.index], stops)(cursor, found)

        return read

    def _candidates(
        self,
        ways: Sequence[_Way],
        firsts: Sequence[tuple[frozenset[str], bool]],
        reads: Sequence[_Read],
        word: str,
    ) -> tuple[tuple[_Test | None, _Read], ...]:
        """The ways that may begin with a word, or with none that is told, and how to be sure."""
        numbers = [n for n, (words, differs) in enumerate(firsts) if word in words or differs]
        is_whole = len(numbers) > 1
        return tuple((self._test(ways[n].items, is_whole=is_whole), reads[n]) for n in numbers)

    def _told(self, ways: Sequence[_Way], words: frozenset[str], name: str) -> str:
        told = []
        for way in ways:
            for item in way.items:
                inner = item.item if isinstance(item, _Value) else item
                if isinstance(inner, _Call) and inner.name in self._grammar.readers:
                    told.append(self._grammar.readers[inner.name].name)
                if inner is not None and not isinstance(inner, _Look | _Made):
                    break
        told = [*sorted(words), *told]
        if len(told) > _TOLD_MAX:
            return f"{'an' if name[0] in 'aeiou' else 'a'} {name.replace('_', ' ')}"
        return " or ".join(told)


def _checked(checks: Sequence[_Check]) -> _Test | None:
    if not checks:
        return None
    if len(checks) == 1:
        ((offset, words, is_not),) = checks
        return lambda cursor: (cursor.words[cursor.index + offset] in words) is not is_not
    return lambda cursor: all(
        (cursor.words[cursor.index + offset] in words) is not is_not
        for offset, words, is_not in checks
    )


def _any_of(tests: Sequence[_Test | None]) -> _Test | None:
    known = [test for test in tests if test is not None]
    if len(known) < len(tests):
        return None
    return lambda cursor: any(test(cursor) for test in known)


def _stops(expected: str) -> _Read:
    def read(cursor: Cursor, _: Fields) -> None:
        raise cursor.stop(expected)

    return read


def _reads_words(words: tuple[str, ...]) -> _Read:
    first, rest = words[0], words[1:]

    def read(cursor: Cursor, _: Fields) -> None:
        if cursor.words[cursor.index] != first:
            raise cursor.stop(first)
        cursor.index += 1
        if rest:
            cursor.expect(*rest)

    return read


def _looks(look: _Look) -> _Read:
    def read(cursor: Cursor, _: Fields) -> None:
        if (cursor.words[cursor.index] in look.words) is look.is_not:
            raise cursor.stop("something else" if look.is_not else " or ".join(sorted(look.words)))

    return read


def _puts(name: str, text: str) -> _Read:
    if text == "^":
        return lambda cursor, found: found.setdefault(name, []).append(cursor.start)
    if text == "$":
        return lambda cursor, found: found.setdefault(name, []).append(cursor.end)
    value = text.strip('"')
    return lambda _, found: found.setdefault(name, []).append(value)


def _makes_node(make: Maker, verb: str) -> _Read:
    def read(_: Cursor, found: Fields) -> None:
        found[_MADE] = [make]
        if verb:
            found["verb"] = [verb]

    return read
