"""What replicas and binlog tools ask about the log before a dump.

A statement is told by its shape: its words in capitals, with `'` for a string, `0` for a number, `@`
for a user variable and `@@` for a system variable. Letters' case, spaces, comments, a trailing `;`
and `SET STATEMENT … FOR` do not matter. What is no such statement is answered elsewhere or by the
source: also UNIX_TIMESTAMP(), server_id and gtid_domain_id, which are the source's own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import islice
from typing import Final

from binlane.errors import StatementError
from binlane.sql.tokens import Token, TokenKind, tokenise

INSPECTED_MAX: Final = 1 << 18
"""Bytes of the longest statement that is looked at; longer ones go to the source."""

_TOKENS_MAX: Final = 1024
"""Replicas set two dozen variables at a time, and no statement of theirs is longer."""

_WORDS: Final = (b"binlog", b"binary", b"master", b"source", b"slave", b"replica", b"gtid")
_SYSTEM: Final = re.compile(rb"\bsystem\b")
_LEAD: Final = re.compile(
    rb"""(?six)
    (?> \s | /\*M?!\d* | /\*.*?\*/ | --[\x00-\x20][^\n]*\n | \#[^\n]*\n | \( )*+
    (?: SELECT|SHOW|SET|CREATE|ALTER|DROP|FLUSH|PURGE|EXPLAIN|DESCRIBE|DESC|GRANT|REVOKE|WITH
      | TABLE|START|STOP )\b
    """
)

# User variables by which replicas say how they want their dump.
_VARIABLES: Final = frozenset(
    {
        "master_heartbeat_period",
        "source_heartbeat_period",
        "master_binlog_checksum",
        "source_binlog_checksum",
        "mariadb_slave_capability",
        "slave_connect_state",
        "slave_gtid_strict_mode",
        "slave_gtid_ignore_duplicates",
        "slave_gtid_until",
        "slave_uuid",
        "replica_uuid",
    }
)
_CHECKSUM_VARIABLE: Final = "binlog_checksum"
_VALUE_SHAPES: Final = "(?:0|'|@@|NULL)"


class Fact(Enum):
    """Something about the binlog, by the name of the variable that holds it on a server."""

    CHECKSUM = "binlog_checksum"
    GTID_POSITION = "gtid_binlog_pos"
    GTID_EXECUTED = "gtid_executed"
    GTID_PURGED = "gtid_purged"
    SEMI_SYNC = "rpl_semi_sync_master_enabled"
    SEMI_SYNC_SOURCE = "rpl_semi_sync_source_enabled"


CONSTANTS: Final = {Fact.CHECKSUM: "CRC32", Fact.SEMI_SYNC: "OFF"}
"""Facts that are the same for every binlog."""

MYSQL_FACTS: Final = frozenset({Fact.GTID_EXECUTED, Fact.GTID_PURGED})
"""Facts of which only a MySQL source's sessions can ask; the source answers them to others."""

UNKNOWN_TO_MYSQL: Final = frozenset({Fact.SEMI_SYNC, Fact.SEMI_SYNC_SOURCE})
"""Variables that a MySQL source does not seem to have: a replica that is told a value, even OFF, waits
for packets of semi-synchronous replication."""


@dataclass(frozen=True, slots=True)
class SetVariables:
    """Assignments to user variables.

    Attributes:
        values: Of those that bear on replication, by lower-case name; None is NULL.
        is_all: Whether nothing else is assigned.
    """

    values: dict[str, str | None]
    is_all: bool


@dataclass(frozen=True, slots=True)
class GetVariable:
    """SELECT of a user variable that a replica has set.

    Attributes:
        column: Head of the result.
        name: Lower-case name.
    """

    column: str
    name: str


@dataclass(frozen=True, slots=True)
class GetFact:
    """A question about the binlog.

    Attributes:
        columns: Heads of the result; the fact stands in the last one.
        fact: What is asked.
    """

    columns: tuple[str, ...]
    fact: Fact


@dataclass(frozen=True, slots=True)
class GetGtidPosition:
    """SELECT BINLOG_GTID_POS(file, position).

    Attributes:
        column: Head of the result.
        file: Base name of a binlog file.
        position: In bytes.
    """

    column: str
    file: str
    position: int


ReplicaStatement = SetVariables | GetVariable | GetFact | GetGtidPosition


def may_concern_binlogs(statement: bytes) -> bool:
    """Whether it is worth to look at a statement more closely.

    Args:
        statement: At most `INSPECTED_MAX` bytes.
    """
    if _LEAD.match(statement) is None:
        return False
    lowered = statement.lower()
    for word in _WORDS:  # many times as fast as a pattern
        if word in lowered:
            return True
    return b"system" in lowered and _SYSTEM.search(lowered) is not None


def recognise(statement: str) -> ReplicaStatement | None:
    """Read a statement; None if it is none of these."""
    try:
        tokens = list(islice(tokenise(statement), _TOKENS_MAX + 1))
    except StatementError:
        return None
    if len(tokens) > _TOKENS_MAX:
        return None
    tokens = _bare(tokens)
    shape = " ".join(map(_shape, tokens))
    for pattern, build in _PATTERNS:
        if pattern.fullmatch(shape):
            return build(statement, tokens)
    return None


def _bare(tokens: list[Token]) -> list[Token]:
    """Without the end, semicolons and `SET STATEMENT … FOR`."""
    while tokens and (tokens[-1].kind is TokenKind.END or tokens[-1].text == ";"):
        tokens.pop()
    while [token.word for token in tokens[:2]] == ["SET", "STATEMENT"]:
        behind = next((i for i, token in enumerate(tokens) if token.word == "FOR"), len(tokens) - 1)
        tokens = tokens[behind + 1 :]
    return tokens


_SHAPES: Final = {
    TokenKind.STRING: "'",
    TokenKind.NUMBER: "0",
    TokenKind.USER_VARIABLE: "@",
    TokenKind.SYSTEM_VARIABLE: "@@",
}


def _shape(token: Token) -> str:
    return _SHAPES.get(token.kind) or token.word or token.text


def _set_variables(statement: str, tokens: Sequence[Token]) -> ReplicaStatement | None:
    del statement
    values: dict[str, str | None] = {}
    is_all = True
    for variable, value in zip(tokens[1::4], tokens[3::4], strict=True):
        name = _user_variable(variable)
        is_checksum = value.kind is TokenKind.SYSTEM_VARIABLE
        if name not in _VARIABLES or (
            is_checksum and _system_variable(value) != _CHECKSUM_VARIABLE
        ):
            is_all = False
        elif is_checksum:
            values[name] = CONSTANTS[Fact.CHECKSUM]
        else:
            values[name] = None if value.word == "NULL" else value.value
    return SetVariables(values, is_all) if values else None


def _get_variable(statement: str, tokens: Sequence[Token]) -> ReplicaStatement | None:
    name = _user_variable(tokens[1])
    return GetVariable(_text(statement, tokens[1:]), name) if name in _VARIABLES else None


def _get_fact(statement: str, tokens: Sequence[Token]) -> ReplicaStatement | None:
    fact = _fact(_system_variable(tokens[1]))
    return GetFact((_text(statement, tokens[1:]),), fact) if fact else None


def _show_variables(statement: str, tokens: Sequence[Token]) -> ReplicaStatement | None:
    del statement
    fact = _fact(tokens[-1].value.lower())
    return GetFact(("Variable_name", "Value"), fact) if fact else None


def _gtid_position(statement: str, tokens: Sequence[Token]) -> ReplicaStatement | None:
    file, position = tokens[3].value, tokens[5].value
    if not (position.isascii() and position.isdigit()):
        return None
    return GetGtidPosition(_text(statement, tokens[1:]), file, int(position))


_PATTERNS: Final[
    Sequence[tuple[re.Pattern[str], Callable[[str, Sequence[Token]], ReplicaStatement | None]]]
] = (
    (
        re.compile(rf"SET @ :?= {_VALUE_SHAPES}(?: , @ :?= {_VALUE_SHAPES})*"),
        _set_variables,
    ),
    (re.compile("SELECT @"), _get_variable),
    (re.compile("SELECT @@"), _get_fact),
    (re.compile("SHOW (?:(?:GLOBAL|SESSION|LOCAL) )?VARIABLES LIKE '"), _show_variables),
    (re.compile(r"SELECT BINLOG_GTID_POS \( ' , [0'] \)"), _gtid_position),
)


def _user_variable(token: Token) -> str:
    return token.text[1:].strip("`'\"").lower()


def _system_variable(token: Token) -> str:
    return token.text[2:].rpartition(".")[2].strip("`").lower()


def _fact(name: str) -> Fact | None:
    return next((fact for fact in Fact if fact.value == name), None)


def _text(statement: str, tokens: Sequence[Token]) -> str:
    """The statement's own text from the first to the last of some tokens."""
    return statement[tokens[0].offset : tokens[-1].end]
