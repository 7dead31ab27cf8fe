"""Statements drawn from the grammar of `sql.parser`: each production of it at least once.

A statement is drawn to hold one production: the ways that lead to it are taken, all else is mostly
left out, or is the first way, so that most of what is drawn is right. What the grammars call readers
(names, numbers, expressions) is drawn here, names by the words before them. Statements whose readers
are code are drawn from `templates`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from random import Random
from typing import Any, Final

from binlane.statements.sql.parser import calls, notation_text
from binlane.statements.sql.servers import Dialect
from tests.differential.logging import objects, templates
from tests.differential.logging.productions import NOTATIONS, shown
from tests.differential.logging.scripts import Script, Statement, needed

_NEVER: Final = re.compile(
    r"SHUTDOWN | RESTART\b | RESET\b.*(?:MASTER|BINARY) | KILL.*\b(?:u1|CURRENT_USER|ROOT)\b | SET\ GLOBAL\ TRANS",
    re.VERBOSE | re.IGNORECASE,
)
"""What would end the server, or forget the log that is read."""
_ELSEWHERE: Final = {
    "type": ("types", "type"),
    "own_type": ("types", "own_type"),
    "field_type": ("types", "own_type"),
    "column_type": ("types", "column_type"),
    "lock": ("queries", "lock"),
}
"""Readers that are a rule of another grammar."""
_EMPTY: Final = frozenset(
    (
        *("columns_next", "immediate_next", "no", "no_period", "no_reference", "none"),
        *("nothing_more", "zero", "oracle_next"),
    )
)
_DEEP: Final = 60
_OF_ACCOUNTS: Final = re.compile(r"\b(?:u[12]|r1)\b|\bGRANTS?\b", re.IGNORECASE)
_OF_SERVER: Final = re.compile(r"(.*) @@((?:mariadb|mysql)[^ ]*)", re.DOTALL)


class _Place:
    """A way, and where it stands: what must be taken to come to it."""

    __slots__ = ("above", "grammar", "items", "rule")

    def __init__(
        self, grammar: str, rule: str, items: Sequence[Any], above: frozenset[int]
    ) -> None:
        self.grammar, self.rule, self.items, self.above = grammar, rule, items, above


class Grammar:
    """What a server's grammar says, and how a statement is drawn from it.

    Attributes:
        targets: The ways that a statement can be drawn for.
        roots: Rules that are statements.
    """

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect
        self._rules = {name: each.of(dialect) for name, each in NOTATIONS.items()}
        self._own = {name: _choice(lines) for name, lines in templates.RULES.items()}
        self._callers: dict[tuple[str, str], list[_Place]] = {}
        self.targets: list[_Place] = []
        for name, each in NOTATIONS.items():
            for rule in each.names:
                self._collect(name, rule, each.parsed(rule), frozenset())
        for rule, choice in self._own.items():
            self._collect("own", rule, choice, frozenset())
        self.roots = [("forms", name) for name in NOTATIONS["forms"].names if name.isupper()]
        self.roots.remove(("forms", "SET"))
        self.roots += [("rows", "LOAD"), ("own", "statement")]

    def _collect(self, grammar: str, rule: str, item: Any, above: frozenset[int]) -> None:
        if isinstance(item, notation_text.ItemChoice):
            for way in self.ways(item):
                place = _Place(grammar, rule, way.items, above | {id(way.items)})
                self.targets.append(place)
                for each in way.items:
                    self._collect(grammar, rule, each, place.above)
        elif isinstance(item, notation_text.ValueItem | notation_text.RepeatedItem):
            self._collect(grammar, rule, item.item, above)
        elif isinstance(item, notation_text.CallItem):
            found = self.resolved(grammar, item.name)
            if found is not None:
                place = _Place(grammar, rule, (), above)
                self._callers.setdefault(found, []).append(place)

    def ways(self, choice: Any) -> list[Any]:
        """The ways that the server has."""
        rules = self._rules["forms"]
        return [way for way in choice.ways if all(map(rules._holds, way.conditions))]

    def resolved(self, grammar: str, name: str) -> tuple[str, str] | None:
        """The rule that a name is; None if it is a reader that is drawn here."""
        if grammar != "own" and name in NOTATIONS[grammar].names:
            return grammar, name
        if name in _ELSEWHERE:
            return _ELSEWHERE[name]
        if name in self._own:
            return "own", name
        above, _, rest = name.partition("_")
        if above in NOTATIONS and rest in NOTATIONS[above].names:
            return above, rest
        return None

    def parsed(self, rule: tuple[str, str]) -> Any:
        """What a rule says."""
        grammar, name = rule
        return self._own[name] if grammar == "own" else NOTATIONS[grammar].parsed(name)

    def way_to(
        self, target: _Place, random: Random
    ) -> tuple[tuple[str, str], frozenset[int]] | None:
        """The statement's rule and all ways that lead to one; None if no statement holds it."""
        forced, place, seen = set(target.above), target, 0
        while (place.grammar, place.rule) not in self.roots:
            callers = self._callers.get((place.grammar, place.rule))
            seen += 1
            if not callers or seen > _DEEP:
                return None
            place = random.choice(callers)
            forced |= place.above
        return (place.grammar, place.rule), frozenset(forced)


def _choice(lines: Sequence[str]) -> notation_text.ItemChoice:
    """A choice of templates: text, `<rule>` in it, and behind `@@` the servers that have it."""
    ways = []
    for line in lines:
        found = _OF_SERVER.fullmatch(line)
        text, condition = (found[1], found[2]) if found else (line, "")
        parts = re.split(r"<(\w+)>", text)
        items: list[Any] = []
        for number, part in enumerate(parts):
            if number % 2:
                items.append(notation_text.CallItem(part))
            elif part:
                items.append(notation_text.WordsItem((part,)))
        ways.append(notation_text.Alternative(tuple(items), (condition,) if condition else ()))
    return notation_text.ItemChoice(tuple(ways), may_be_none=False)


class Drawing:
    """One statement while it is drawn."""

    def __init__(self, grammar: Grammar, random: Random, serial: int, variety: float) -> None:
        self._grammar, self._random, self._variety = grammar, random, variety
        self._words: list[str] = []
        self._serial, self._depth = serial, 0
        self._forced: set[int] = set()
        self.rules: set[str] = set()

    def draw(self, target: _Place) -> str | None:
        """A statement that takes a way; None if there is none, or none that may be run."""
        found = self._grammar.way_to(target, self._random)
        if found is None:
            return None
        root, forced = found
        self._forced = set(forced)
        self._rule(root)
        text = " ".join(" ".join(self._words).split())
        for name in calls._NEED_NO_BLANK:
            text = re.sub(rf"\b{name} \(", f"{name}(", text, flags=re.IGNORECASE)
        return None if _NEVER.match(text) else text

    @property
    def text(self) -> str:
        """What is drawn so far, in capitals."""
        return " ".join(" ".join(self._words).upper().split())

    def _rule(self, rule: tuple[str, str]) -> None:
        self._depth += 1
        self.rules.add(rule[1])
        self._item(rule[0], self._grammar.parsed(rule))
        self._depth -= 1

    def _item(self, grammar: str, item: Any) -> None:
        match item:
            case notation_text.WordsItem(words=words):
                self._words += map(self._of, words) if grammar == "own" else words
            case notation_text.ValueItem(item=inner):
                if inner is not None:
                    self._item(grammar, inner)
            case notation_text.RepeatedItem(item=inner, has_commas=has_commas):
                before = templates.BEFORE.get(shown(inner))
                if has_commas and before is not None and (text := before(self.text)):
                    self._words += [text, ","]
                self._item(grammar, inner)
                if has_commas and self._random.random() < self._variety / 4 and before is None:
                    self._words.append(",")
                    self._item(grammar, inner)
            case notation_text.ItemChoice():
                self._choice(grammar, item)
            case notation_text.CallItem(name=name):
                rule = self._grammar.resolved(grammar, name)
                if rule is not None:
                    self._rule(rule)
                else:
                    self._words.append(self._reader(name))

    def _choice(self, grammar: str, choice: Any) -> None:
        ways = self._grammar.ways(choice)
        forced = [way for way in ways if id(way.items) in self._forced]
        if forced:
            way = self._random.choice(forced)
            self._forced.discard(id(way.items))
        elif (
            choice.may_be_none
            and (self._depth > _DEEP or self._random.random() > self._variety / 3)
        ) or not ways:
            return
        elif grammar != "own" and (self._depth > _DEEP or self._random.random() > self._variety):
            way = ways[0]
        else:
            way = self._random.choice(ways)
        for item in way.items:
            self._item(grammar, item)

    # Readers that are drawn here ------------------------------------------------------------------

    def _reader(self, name: str) -> str:
        if name in _EMPTY:
            return ""
        for pattern, readers, found in templates.NAMES:
            if (not readers or name in readers) and pattern.search(self.text):
                return self._of(found)
        assert name in templates.READERS, f"{name} cannot be drawn"
        return self._of(templates.READERS[name])

    def _of(self, found: str | Sequence[str]) -> str:
        """One of some texts; `#` is a number that no other statement has."""
        text = found if isinstance(found, str) else self._random.choice(found)
        if "#" in text:
            self._serial += 1
            text = text.replace("#", str(self._serial))
        return text


def _opening(random: Random) -> Iterator[str]:
    yield f"set binlog_format={random.choice(('statement', 'mixed', 'row'))}"
    if random.random() < 0.1:
        yield "set autocommit=0"
    if random.random() < 0.15:
        yield "begin"
        yield "insert into t2(a, b) values(77, 'o')"


def script(grammar: Grammar, targets: Sequence[_Place], seed: int, variety: float = 0.0) -> Script:
    """A session that draws a statement for each of some ways, and uses what it has made.

    Args:
        grammar: Of the server.
        targets: The ways.
        seed: What else is drawn.
        variety: From 0, for as little as can be beside them, to 1.
    """
    flavor = grammar.dialect.flavor
    random = Random(f"{flavor}-{seed}")
    texts = list(_opening(random))
    for number, target in enumerate(targets):
        drawn = Drawing(grammar, random, 1000 + 100 * number, variety).draw(target)
        if drawn is None:
            continue
        if target.rule == "oracle":
            texts += ["set sql_mode=oracle", *around(drawn, random), "set sql_mode=default"]
        else:
            texts += around(drawn, random)
    made = objects.schema(flavor, has_accounts=any(map(_OF_ACCOUNTS.search, texts)))
    statements = tuple(Statement(sql=text) for text in texts)
    return Script(schema=needed(made, texts), statements=statements)


def around(sql: str, random: Random) -> Iterator[str]:
    """A statement, with what must stand before it and what uses its objects."""
    for pattern, before, after in templates.AROUND:
        found = pattern.match(sql)
        if found:
            for text in before:
                yield found.expand(text)
            yield sql
            for text in random.sample(after, min(2, len(after))):
                yield found.expand(text)
            return
    yield sql


def sessions(grammar: Grammar, *, size: int, start: int = 0) -> Iterator[Sequence[_Place]]:
    """All ways once, some for each session, in an order of the first seed's."""
    targets = list(grammar.targets)
    Random(start).shuffle(targets)
    for index in range(0, len(targets), size):
        yield targets[index : index + size]
