"""The text of a routine's statement as it is logged: NAME_CONST in the place of local variables.

Source: MariaDB sql/sp_head.cc, subst_spvars; MySQL sql/sp_instr.cc, of the same name. A variable is
replaced only where it stands for its value: what follows is the grammar of such places.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import Final

from binlane.session.programs.values import Value, constant, escaped
from binlane.sql.tokens import NAME_KINDS, SqlSyntaxError, Token, TokenKind, tokenise

_CACHE_SIZE: Final = 4096


class _Clause(Enum):
    """What names in a clause are."""

    EXPRESSION = 1
    TABLES = 2
    """Tables and aliases."""
    TARGETS = 3
    """Columns that are set, each followed by `=` and an expression."""
    COLUMNS = 4
    """Other names: columns of INSERT or USING, targets of INTO."""
    LIMIT = 5


@dataclass(slots=True)
class _Level:
    """One nesting of parentheses."""

    clause: _Clause
    is_query: bool
    base: _Clause


@dataclass(frozen=True, slots=True)
class VariablePlace:
    """Where a statement names a local variable.

    Attributes:
        name: As it is written there.
        offset: In the statement.
        end: Behind it.
        is_limit: In LIMIT, where the bare number is written.
    """

    name: str
    offset: int
    end: int
    is_limit: bool = False


def with_constants(
    statement: str,
    names: Collection[str],
    value_of: Callable[[str], tuple[str, Value]],
    *,
    is_mariadb: bool,
) -> str:
    """The text that is logged for a statement of a routine.

    Args:
        statement: As it stands in the body.
        names: Of the local variables in lower case; of rows' fields as `row.field`.
        value_of: A variable's name as declared, and its value.
        is_mariadb: Whose notation is followed.
    """
    places = variable_places(statement, frozenset(names))
    parts: list[str] = []
    end = 0
    for place in places:
        name, value = value_of(place.name)
        parts.append(statement[end : place.offset])
        text = constant(value, is_mariadb=is_mariadb)
        parts.append(text if place.is_limit else f" NAME_CONST('{escaped(name)}',{text})")
        end = place.end
    return "".join([*parts, statement[end:]])


@lru_cache(_CACHE_SIZE)
def variable_places(statement: str, names: frozenset[str]) -> tuple[VariablePlace, ...]:
    """Where a statement stands for the values of local variables.

    A name that is an alias, a table, a column that is set or inserted into, or a function is none.
    """
    if not names:
        return ()
    try:
        tokens = list(tokenise(statement))
    except SqlSyntaxError:
        return ()
    return tuple(_Finder(tokens, names).places())


class _Finder:
    """Walks over the tokens of a statement and keeps in mind what names mean there."""

    def __init__(self, tokens: Sequence[Token], names: frozenset[str]) -> None:
        self._tokens = tokens
        self._names = names
        self._levels = [_Level(_Clause.EXPRESSION, True, _Clause.EXPRESSION)]
        self._verb = tokens[0].word

    def places(self) -> Iterator[VariablePlace]:
        index = 0
        while index < len(self._tokens) - 1:
            token = self._tokens[index]
            if token.kind is TokenKind.OPERATOR:
                self._operator(index, token.text)
            elif token.kind in NAME_KINDS and (length := self._variable(index)):
                last = self._tokens[index + length - 1]
                name = ".".join(part.value for part in self._tokens[index : index + length : 2])
                is_limit = self._levels[-1].clause is _Clause.LIMIT
                yield VariablePlace(name, token.offset, last.end, is_limit)
                index += length - 1
            elif token.kind is TokenKind.NAME:
                self._keyword(index, token.word)
            index += 1

    def _operator(self, index: int, text: str) -> None:
        level = self._levels[-1]
        if text == "(":
            self._open(index)
        elif text == ")" and len(self._levels) > 1:
            self._levels.pop()
        elif text == "," and level.base is _Clause.TABLES:
            level.clause = _Clause.TABLES
        elif text == "," and level.base is _Clause.TARGETS:
            level.clause = _Clause.TARGETS
        elif text in {"=", ":="} and level.clause is _Clause.TARGETS:
            level.clause = _Clause.EXPRESSION

    def _open(self, index: int) -> None:
        """Begin a nesting: of columns, tables, or of an expression or query."""
        following = self._tokens[index + 1].word
        outer = self._levels[-1]
        if following in _QUERY_WORDS:
            self._levels.append(_Level(_Clause.EXPRESSION, True, _Clause.EXPRESSION))
        elif outer.clause in {_Clause.TABLES, _Clause.COLUMNS}:
            before = self._tokens[index - 1]
            is_join = outer.clause is _Clause.TABLES and before.kind not in NAME_KINDS
            is_join = is_join or before.word in _TABLE_WORDS
            clause = _Clause.TABLES if is_join and not self._is_insert(index) else _Clause.COLUMNS
            self._levels.append(_Level(clause, is_join, clause))
        else:
            clause = _Clause.EXPRESSION
            if self._tokens[index - 1].word in _COLUMN_FUNCTIONS and outer.base is _Clause.TARGETS:
                clause = _Clause.COLUMNS
            self._levels.append(_Level(clause, False, clause))

    def _is_insert(self, index: int) -> bool:
        return self._tokens[index - 1].word not in _TABLE_WORDS and self._verb in _INSERTS

    def _keyword(self, index: int, word: str) -> None:
        level = self._levels[-1]
        if self._tokens[index - 1].text == "." and index:
            return
        clause = _CLAUSES.get(word)
        if clause is None or (not level.is_query and word not in {"ON", "USING"}):
            return
        if word == "FROM" and self._tokens[index + 1].text == ".":
            return
        if word == "UPDATE" and index and self._tokens[index - 1].word == "KEY":
            clause = _Clause.TARGETS
        elif (
            (word == "UPDATE" and index and self._tokens[index - 1].word == "FOR")
            or (word == "ON" and level.base is not _Clause.TABLES)
            or (word in _COLUMN_FUNCTIONS and level.base is _Clause.TARGETS)
        ):
            return
        level.clause = clause
        if word not in {"ON", "USING"}:
            level.base = clause

    def _variable(self, index: int) -> int:
        """How many tokens from here name a variable; 0 if it is none."""
        level = self._levels[-1]
        if level.clause not in {_Clause.EXPRESSION, _Clause.LIMIT}:
            return 0
        token = self._tokens[index]
        following = self._tokens[index + 1]
        length = 1
        name = token.value.lower()
        if following.text == "." and index + 2 < len(self._tokens):
            name = f"{name}.{self._tokens[index + 2].value.lower()}"
            length, following = 3, self._tokens[index + 3]
        row = name.partition(".")[0] + ".*"
        if (name not in self._names and not (length == 3 and row in self._names)) or (
            following.text in {"(", "."}
        ):
            return 0
        return length if self._stands_for_a_value(index) else 0

    def _stands_for_a_value(self, index: int) -> bool:
        """Whether what comes before lets an operand follow, not an alias or a member."""
        if index == 0:
            return False
        before = self._tokens[index - 1]
        if before.kind is TokenKind.OPERATOR:
            return before.text not in {".", ")"}
        if before.kind is not TokenKind.NAME:
            return False
        if before.word == "AS":
            return False
        return before.word in _BEFORE_OPERANDS and before.value.lower() not in self._names


_INSERTS: Final = ("INSERT", "REPLACE")
_QUERY_WORDS: Final = ("SELECT", "WITH", "VALUES", "TABLE")
_TABLE_WORDS: Final = ("FROM", "JOIN", "STRAIGHT_JOIN", "LATERAL")
_COLUMN_FUNCTIONS: Final = ("VALUES", "VALUE", "DEFAULT")
_CLAUSES: Final = {
    **dict.fromkeys(
        (
            "SELECT",
            "WHERE",
            "HAVING",
            "BY",
            "ON",
            "VALUES",
            "VALUE",
            "RETURNING",
            "DO",
            "CALL",
            "UNION",
            "EXCEPT",
            "INTERSECT",
        ),
        _Clause.EXPRESSION,
    ),
    **dict.fromkeys(("FROM", "JOIN", "STRAIGHT_JOIN", "UPDATE", "DELETE", "TABLE"), _Clause.TABLES),
    "INTO": _Clause.COLUMNS,
    "USING": _Clause.COLUMNS,
    "SET": _Clause.TARGETS,
    "LIMIT": _Clause.LIMIT,
}
"""By the word that begins a clause: what names in it are."""

_BEFORE_OPERANDS: Final = frozenset(
    (
        "SELECT",
        "DISTINCT",
        "DISTINCTROW",
        "ALL",
        "HIGH_PRIORITY",
        "SQL_SMALL_RESULT",
        "SQL_BIG_RESULT",
        "SQL_BUFFER_RESULT",
        "SQL_NO_CACHE",
        "SQL_CACHE",
        "SQL_CALC_FOUND_ROWS",
        "WHERE",
        "HAVING",
        "BY",
        "ON",
        "AND",
        "OR",
        "XOR",
        "NOT",
        "WHEN",
        "THEN",
        "ELSE",
        "CASE",
        "BETWEEN",
        "LIKE",
        "RLIKE",
        "REGEXP",
        "DIV",
        "MOD",
        "BINARY",
        "INTERVAL",
        "ESCAPE",
        "RETURNING",
        "LIMIT",
        "OFFSET",
        "DO",
        "IN",
        "ANY",
        "SOUNDS",
        "RETURN",
        "FROM",
        "FOR",
        "SEPARATOR",
        "LEADING",
        "TRAILING",
        "BOTH",
        "TO",
    )
)
"""Words behind which an operand can stand."""
