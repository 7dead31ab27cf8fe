"""Productions of our parser, and which of them a text takes.

A production is what a parser that was written down decides: a way of a choice in a grammar that is
text (`sql.parser.notation`), of those that the server has; and a branch of a reader that is code: what
stands behind an `if`, `else`, `case` or loop and does more than refuse. Both are found in the parser
itself, so that whatever is added to it is asked for here.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any, Final

from binlane.statements.sql import parser
from binlane.statements.sql.parser import (
    accounts,
    calls,
    expressions,
    forms,
    literals,
    notation,
    notation_readers,
    notation_text,
    programs,
    queries,
    rows,
    tables,
    types,
    variables,
)
from binlane.statements.sql.servers import Dialect

NOTATIONS: Final[dict[str, notation.Notation]] = {
    "forms": forms.GRAMMAR,
    "rows": rows._NOTATION,
    "queries": queries._NOTATION,
    "calls": calls._NOTATION,
    "types": types._NOTATION,
}
_READERS: Final = (
    *(accounts, calls, expressions, forms, literals, parser, programs, queries, rows, tables),
    *(types, variables),
)
_READ_BY_CODE: Final[dict[str, frozenset[str]]] = {
    "forms": frozenset(
        ("declaration", "return", "leave", "iterate", "open", "opened", "fetch", "close")
    ),
    "rows": frozenset(),
    "queries": frozenset(("into", "lock")),
    "calls": frozenset(calls._RULES.values()),
    "types": frozenset(("type", "own_type", "column_type")),
}
"""Rules that readers ask for; others are asked for by a rule, or are a statement's own."""
_WIDTH: Final = 90


class Ways:
    """The ways of all choices that a server has.

    Attributes:
        names: Of each, `grammar: rule: what stands there`, by the identity of its items.
    """

    def __init__(self, dialect: Dialect) -> None:
        self.names: dict[int, str] = {}
        self._rules = {name: each.of(dialect) for name, each in NOTATIONS.items()}
        self._reached: set[tuple[str, str]] = set()
        for name in NOTATIONS:
            for rule in NOTATIONS[name].names:
                if rule.isupper() or rule in _READ_BY_CODE[name]:
                    self._reach(name, rule)

    def _reach(self, name: str, rule: str) -> None:
        """Collect the ways of a rule to which a statement leads."""
        if (name, rule) in self._reached or rule not in NOTATIONS[name].names:
            return
        self._reached.add((name, rule))
        self._collect(name, rule, NOTATIONS[name].parsed(rule))

    def _collect(self, name: str, rule: str, item: Any) -> None:
        rules = self._rules[name]
        if isinstance(item, notation_text.ItemChoice):
            for way in item.ways:
                if not all(map(rules._holds, way.conditions)):
                    continue
                if rules._inner(way) is None:
                    self._name(f"{name}: {rule}", way.items)
                for each in way.items:
                    self._collect(name, rule, each)
        elif isinstance(item, notation_text.ValueItem | notation_text.RepeatedItem):
            self._collect(name, rule, item.item)
        elif isinstance(item, notation_text.CallItem) and item.name not in NOTATIONS[name].readers:
            self._reach(name, item.name)

    def _name(self, where: str, items: Sequence[Any]) -> None:
        told = f"{where}: {' '.join(map(shown, items))[:_WIDTH]}"
        while told in self.names.values():
            told += "'"
        self.names[id(items)] = told


def shown(item: Any) -> str:
    """What an item of a grammar says, in its own signs; fields and nodes are left out."""
    match item:
        case notation_text.WordsItem(words=words):
            return " ".join(words)
        case notation_text.LookItem(words=words, is_not=is_not):
            return ("!" if is_not else "&") + "|".join(sorted(words))
        case notation_text.CallItem(name=name):
            return str(name)
        case notation_text.ValueItem(item=inner):
            return "" if inner is None else shown(inner)
        case notation_text.RepeatedItem(item=inner, has_commas=has_commas):
            return shown(inner) + (", ..." if has_commas else " ...")
        case notation_text.ItemChoice(ways=ways, may_be_none=may_be_none):
            text = " | ".join(" ".join(map(shown, way.items)) for way in ways)
            return f"[{text}]" if may_be_none else f"{{{text}}}"
    return ""


class _Marked(notation._Rules):
    """Rules that tell which of their ways are read."""

    def __init__(
        self, notation_: notation.Notation, dialect: Dialect, names: dict[int, str], taken: set[str]
    ) -> None:
        super().__init__(notation_, dialect)
        self._names, self._taken = names, taken

    def _way(self, items: Sequence[Any]) -> notation_readers.Read:
        read, name, taken = super()._way(items), self._names.get(id(items)), self._taken
        if name is None:
            return read

        def read_marked(cursor: Any, found: Any) -> None:
            read(cursor, found)
            taken.add(name)

        return read_marked


class Productions:
    """The productions of a server's statements, and those that a statement takes.

    Attributes:
        all: Names of all of them.
    """

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect
        self._taken: set[str] = set()
        self._known: dict[tuple[str, bool], frozenset[str]] = {}
        self._ways: dict[bool, dict[int, str]] = {}
        for is_oracle in (False, True) if dialect.flavor == "mariadb" else (False,):
            self._ways[is_oracle] = Ways(dialect._replace(is_oracle=is_oracle)).names
        self.all = frozenset(name for names in self._ways.values() for name in names.values())
        self.all |= frozenset(branches().values())

    def of_session(self, texts: Iterable[str]) -> Iterator[tuple[str, frozenset[str]]]:
        """What each statement of a session takes, in the sql_mode that it has set by then."""
        dialect = self.dialect
        for text in texts:
            key = text, dialect.is_oracle
            if key not in self._known:
                self._known[key] = self.of(text, dialect)
            yield text, self._known[key]
            if text.startswith("set sql_mode="):
                dialect = dialect._replace(is_oracle=text.endswith("=oracle"))

    def of(self, sql: str, dialect: Dialect | None = None) -> frozenset[str]:
        """The productions that a text takes; none if it is none of our grammar."""
        dialect = self.dialect if dialect is None else dialect
        self._taken.clear()
        with self._marking(dialect), _tracing(self._taken):
            try:
                parser.parse(sql, dialect)
            except Exception:  # noqa: BLE001 - what it takes is asked, not whether it is right
                return frozenset()
        return frozenset(self._taken)

    @contextmanager
    def _marking(self, dialect: Dialect) -> Iterator[None]:
        key = dialect.flavor, dialect.version, dialect.is_oracle
        names = self._ways[dialect.is_oracle]
        before = {name: each._translated.get(key) for name, each in NOTATIONS.items()}
        for name, each in NOTATIONS.items():
            each._translated[key] = self._marked(name, dialect, names)
        try:
            yield
        finally:
            for name, each in NOTATIONS.items():
                rules = before[name]
                if rules is None:
                    del each._translated[key]
                else:
                    each._translated[key] = rules

    def _marked(self, name: str, dialect: Dialect, names: dict[int, str]) -> _Marked:
        known = self.__dict__.setdefault("_rules", {})
        key = name, dialect.is_oracle
        if key not in known:
            known[key] = _Marked(NOTATIONS[name], dialect, names, self._taken)
        found: _Marked = known[key]
        return found


# Readers that are code ----------------------------------------------------------------------------


@cache
def branches() -> dict[tuple[str, int], str]:
    """Branches of the readers: file and first line, and the name of each."""
    found: dict[tuple[str, int], str] = {}
    for module in _READERS:
        path = str(module.__file__)
        for line, name in _branches_of(module):
            found[path, line] = name
    return found


def _branches_of(module: ModuleType) -> Iterator[tuple[int, str]]:
    text = Path(str(module.__file__)).read_text(encoding="utf-8")
    lines = text.splitlines()
    short = module.__name__.rpartition(".")[2]
    for function in ast.walk(ast.parse(text)):
        if not isinstance(function, ast.FunctionDef):
            continue
        for body in _bodies(function):
            if isinstance(body[0], ast.Raise):
                continue
            line = body[0].lineno
            yield line, f"{short}: {function.name}: {lines[line - 1].strip()[:_WIDTH]} ({line})"


def _bodies(function: ast.FunctionDef) -> Iterator[list[ast.stmt]]:
    """Statements that are run together: of the function, and of each branch in it."""
    body = function.body
    first = body[0]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
        body = body[1:]
    if body:
        yield body
    for node in _own(body):
        if isinstance(node, ast.If | ast.For | ast.While):
            yield node.body
            if node.orelse and not isinstance(node.orelse[0], ast.If):
                yield node.orelse
        elif isinstance(node, ast.match_case):
            yield node.body


def _own(body: Sequence[ast.AST]) -> Iterator[ast.AST]:
    """Nodes of a function, without those of functions inside of it."""
    for node in body:
        if isinstance(node, ast.FunctionDef):
            continue
        yield node
        yield from _own(list(ast.iter_child_nodes(node)))


@contextmanager
def _tracing(taken: set[str]) -> Iterator[None]:
    """Notes the branches that are run."""
    known = branches()
    files = {path for path, _ in known}

    def line(frame: FrameType, event: str, _: Any) -> Callable[..., Any]:
        if event == "line":
            name = known.get((frame.f_code.co_filename, frame.f_lineno))
            if name is not None:
                taken.add(name)
        return line

    def call(frame: FrameType, _: str, __: Any) -> Callable[..., Any] | None:
        return line if frame.f_code.co_filename in files else None

    before = sys.gettrace()
    sys.settrace(call)
    try:
        yield
    finally:
        sys.settrace(before)
