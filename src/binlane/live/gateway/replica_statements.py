"""Statements of replicas and binlog tools about the log before a dump, and between two dumps.

There are three kinds: variables that a replica sets to say how it wants its dump (`SetVariables`), which stay
here; statements in whose text something about the binlog is read (`BinlogReads`): the value takes its place in the
text, which the source then runs; and SHOW VARIABLES and SHOW STATUS (`Shows`), in whose rows the value takes
the place of the source's. Letters' case, spaces, comments, a trailing `;` and `SET STATEMENT … FOR` do not
matter. Any other statement is answered elsewhere or by the source: also UNIX_TIMESTAMP(), server_id and
gtid_domain_id, which are the source's own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache
from itertools import islice
from typing import Final

from binlane.errors import StatementError
from binlane.log.codec.types import Flavor
from binlane.names import quote
from binlane.positions import FilePosition
from binlane.statements.sql.facts import FunctionUse, StatementFacts, VariableScope
from binlane.statements.sql.reading import read
from binlane.statements.sql.servers import Dialect
from binlane.statements.sql.statement_kinds import StatementKind
from binlane.statements.sql.stored import runs_nothing_stored
from binlane.statements.sql.tokens import Token, TokenKind, tokenise
from binlane.statements.sql.tree.expressions import SelectItem, walk

INSPECTED_MAX: Final = 1 << 18
"""Bytes of the longest statement that is looked at; longer ones go to the source."""

_TOKENS_MAX: Final = 1024
"""Replicas set two dozen variables at a time, and no statement of theirs is longer."""

_WORDS: Final = (
    b"binlog",
    b"binary",
    b"master",
    b"source",
    b"slave",
    b"replica",
    b"gtid",
    b"tables_info",
)
_SYSTEM: Final = re.compile(rb"\bsystem\b")
_SHOWN: Final = re.compile(rb"\b(?:variables|status)\b")
_KILL: Final = re.compile(rb"\bfor\s+kill\b")
_LEAD: Final = re.compile(
    rb"""(?six)
    (?: \s | /\*M?!\d*+ | /\*.*?\*/ | --[\x00-\x20][^\n]*+\n | \#[^\n]*+\n | \( | (?!) )*+
    (?: SELECT|SHOW|SET|CREATE|ALTER|DROP|FLUSH|PURGE|EXPLAIN|DESCRIBE|DESC|GRANT|REVOKE|WITH
      | TABLE|START|STOP|DO|ACKNOWLEDGE|CHECK | (?P<kill>KILL) )\b
    """
)

VARIABLES: Final = frozenset(
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
        "binlane_tables_info",
    }
)
"""User variables by which replicas say how they want their dump."""
_CHECKSUM_VARIABLE: Final = "binlog_checksum"
_VALUE_SHAPES: Final = "(?:0|'|@@|NULL)"
_GTID_POSITION: Final = "binlog_gtid_pos"
_READABLE_WORDS: Final = frozenset({_GTID_POSITION, "binlog_with_tables_info"})
_WRONG_VARIABLE: Final = 1238
_READING: Final = frozenset(
    (StatementKind.SELECT, StatementKind.SET, StatementKind.DO, StatementKind.CALL)
)
"""Statements in whose text values take the places of what is asked: no definitions."""
_ALIAS_MAX: Final = 255
_PLAIN: Final = re.compile(r"[ -&(-\[\]-~]*+")
"""Text that stands in a literal as it is, in every sql_mode."""


class BinlogFact(Enum):
    """Something about the binlog, by the name of the variable that holds it on a server."""

    CHECKSUM = "binlog_checksum"
    GTID_POSITION = "gtid_binlog_pos"
    GTID_EXECUTED = "gtid_executed"
    GTID_PURGED = "gtid_purged"
    SEMI_SYNC = "rpl_semi_sync_master_enabled"
    SEMI_SYNC_SOURCE = "rpl_semi_sync_source_enabled"
    FORMAT = "binlog_format"
    TABLES_INFO = "binlog_with_tables_info"


CONSTANTS: Final = {BinlogFact.CHECKSUM: "CRC32", BinlogFact.SEMI_SYNC: "OFF"}
"""Facts that are the same for every binlog."""

_SHOWN_GLOBALLY: Final = frozenset({BinlogFact.FORMAT})
"""Facts of the binlog in SHOW GLOBAL VARIABLES alone: elsewhere they are the session's."""

OWN: Final = frozenset({BinlogFact.TABLES_INFO})
"""Variables that no source has; they are global and read only."""

SNAPSHOT: Final = ("binlog_snapshot_file", "binlog_snapshot_position")
"""Names of the rows of MariaDB's SHOW STATUS on a consistent snapshot."""

MYSQL_FACTS: Final = frozenset({BinlogFact.GTID_EXECUTED, BinlogFact.GTID_PURGED})
"""Facts of which only a MySQL source's sessions can ask; the source answers them to others."""

OF_SEMI_SYNC: Final = frozenset({BinlogFact.SEMI_SYNC, BinlogFact.SEMI_SYNC_SOURCE})
"""Variables that a source does not seem to have: a replica of either flavor that is shown a value, even
OFF, waits for packets of semi-synchronous replication. A MySQL has them with a plugin alone, so that
to read one is an error there; a MariaDB's is OFF."""


@dataclass(frozen=True, slots=True)
class SetVariables:
    """Assignments to user variables.

    Attributes:
        values: Values of the variables that bear on replication, by lower-case name; None is NULL.
        is_all: True if nothing else is assigned.
    """

    values: dict[str, str | None]
    is_all: bool


@dataclass(frozen=True, slots=True)
class GtidPositionAt:
    """BINLOG_GTID_POS(file, position).

    Attributes:
        place: File and position that the arguments name.
    """

    place: FilePosition


@dataclass(frozen=True, slots=True)
class ReplicaVariable:
    """One of `VARIABLES`.

    Attributes:
        name: In lower case, without `@`.
    """

    name: str


Asked = BinlogFact | GtidPositionAt | ReplicaVariable


@dataclass(frozen=True, slots=True)
class BinlogRead:
    """A place at which a statement reads something about the binlog.

    Attributes:
        start: Offset in characters at which the place begins in the text.
        end: Offset in characters at which the place ends.
        what: Value that is read there.
    """

    start: int
    end: int
    what: Asked


@dataclass(frozen=True, slots=True)
class BinlogReads:
    """A statement that reads something about the binlog.

    Attributes:
        text: Text of the client's statement.
        places: Places of the reads, in order.
        columns: Beginnings and ends of those columns of results that have no name but their text.
    """

    text: str
    places: tuple[BinlogRead, ...]
    columns: tuple[tuple[int, int], ...] = ()

    def with_values(self, values: Mapping[Asked, str | None]) -> str | None:
        """Return the text with values in the given places; None if no place has one.

        Args:
            values: Values of the reads; None is NULL. A read without an entry stays in the text.
        """
        edits = [
            (place.start, place.end, _literal(place.what, values[place.what]))
            for place in self.places
            if place.what in values
        ]
        if not edits:
            return None
        for start, end in self.columns:
            if any(start <= at < end for at, _, _ in edits) and end - start <= _ALIAS_MAX:
                edits.append((end, end, f" AS {quote(self.text[start:end])}"))
        parts: list[str] = []
        done = 0
        for start, end, text in sorted(edits):
            parts += (self.text[done:start], text)
            done = end
        return "".join((*parts, self.text[done:]))


@dataclass(frozen=True, slots=True)
class Shows:
    """SHOW VARIABLES or SHOW STATUS whose rows may tell something about the binlog.

    Attributes:
        text: Text of the client's statement.
        names: Names, in lower case, of the rows that may tell something about the binlog.
        is_exact: True if nothing else is asked for.
        condition: WHERE clause of the statement; empty without.
        is_all: True if the statement has neither LIKE nor WHERE.
    """

    text: str
    names: frozenset[str]
    is_exact: bool
    condition: str = ""
    is_all: bool = False


@dataclass(frozen=True, slots=True)
class Kill:
    """KILL of a session by its number.

    Attributes:
        text: Text of the client's statement.
        is_query: True for KILL QUERY: the session lives on.
    """

    text: str
    thread_id: int
    is_query: bool


ReplicaStatement = SetVariables | BinlogReads | Shows | Kill


ASKING_FIRST: Final = frozenset(b" \t\n\r\f\v/-#(SCADFPEGRWTKscadfpegrwtk")
"""Bytes with which a statement begins that is worth being looked at more closely."""


def may_concern_binlogs(statement: bytes) -> bool:
    """True if a statement is worth being looked at more closely.

    Args:
        statement: Text of at most `INSPECTED_MAX` bytes.
    """
    if not statement or statement[0] not in ASKING_FIRST:
        return False
    lead = _LEAD.match(statement)
    if lead is None:
        return False
    if lead["kill"]:
        return True
    lowered = statement.lower()
    for word in _WORDS:  # many times as fast as a pattern
        if word in lowered:
            return True
    if b"system" in lowered and _SYSTEM.search(lowered) is not None:
        return True
    if b"show" in lowered and _SHOWN.search(lowered) is not None:
        return True
    return b"kill" in lowered and _KILL.search(lowered) is not None


def recognise(statement: str, flavor: Flavor = Flavor.MARIADB) -> ReplicaStatement | None:
    """Read a statement; None if it is none of these.

    Args:
        statement: SQL text of a client's statement.
        flavor: Flavor of the source server.

    Raises:
        StatementError: If the statement sets, or reads as the session's, a variable that is global and read
        only.
    """
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
            found = build(statement, tokens, flavor)
            if found is not None:
                return found
    if any(map(_is_readable, tokens)):
        facts = read(statement, database="", dialect=_dialect(flavor))
        _refuse_own(facts)
        return _reads(facts, flavor)
    return None


def _refuse_own(facts: StatementFacts) -> None:
    """Check that a statement does not set a variable that is read only, or read it as the session's.

    Raises:
        StatementError: If it does, as servers say it.
    """
    own = {fact.value for fact in OWN}
    for one in (*facts.assignments, *facts.statement_assignments):
        if one.name in own:
            raise StatementError(
                f"Variable '{one.name}' is a read only variable",
                errno=_WRONG_VARIABLE,
                sqlstate="HY000",
                hint="set it in binlane.toml, [binlog], and start binlane again",
            )
    for use in facts.system_variables:
        if use.name in own and use.scope is VariableScope.SESSION:
            raise StatementError(
                f"Variable '{use.name}' is a GLOBAL variable",
                errno=_WRONG_VARIABLE,
                sqlstate="HY000",
            )


def fact_named(name: str, flavor: Flavor) -> BinlogFact | None:
    """Give the fact on the binlog in a source's system variable; None if it is the source's own."""
    fact = _FACTS.get(name.lower())
    if fact is None or fact in CONSTANTS or fact in _OF_BOTH:
        return fact
    return fact if (fact in MYSQL_FACTS) == (flavor is Flavor.MYSQL) else None


def _is_readable(token: Token) -> bool:
    return token.kind in (TokenKind.SYSTEM_VARIABLE, TokenKind.USER_VARIABLE) or (
        token.text.lower() in _READABLE_WORDS
    )


@cache
def _dialect(flavor: Flavor) -> Dialect:
    return Dialect(flavor=flavor.value)


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


def _set_variables(
    statement: str, tokens: Sequence[Token], flavor: Flavor
) -> ReplicaStatement | None:
    del statement, flavor
    values: dict[str, str | None] = {}
    is_all = True
    for variable, value in zip(tokens[1::4], tokens[3::4], strict=True):
        name = _user_variable(variable)
        is_checksum = value.kind is TokenKind.SYSTEM_VARIABLE
        if name not in VARIABLES or (is_checksum and _system_variable(value) != _CHECKSUM_VARIABLE):
            is_all = False
        elif is_checksum:
            values[name] = CONSTANTS[BinlogFact.CHECKSUM]
        else:
            values[name] = None if value.word == "NULL" else value.value
    return SetVariables(values, is_all) if values else None


def _shows_variables(
    statement: str, tokens: Sequence[Token], flavor: Flavor
) -> ReplicaStatement | None:
    is_global = any(token.word == "GLOBAL" for token in tokens[:2])
    names = [
        name
        for name in _FACTS
        if (fact := fact_named(name, flavor)) and (is_global or fact not in _SHOWN_GLOBALLY)
    ]
    return _shows(statement, tokens, flavor, "VARIABLES", names)


def _shows_status(
    statement: str, tokens: Sequence[Token], flavor: Flavor
) -> ReplicaStatement | None:
    return None if flavor is Flavor.MYSQL else _shows(statement, tokens, flavor, "STATUS", SNAPSHOT)


def _shows(
    statement: str, tokens: Sequence[Token], flavor: Flavor, word: str, names: Sequence[str]
) -> ReplicaStatement | None:
    behind = next(i for i, token in enumerate(tokens) if token.word == word) + 1
    asked = frozenset(names)
    is_exact, condition = False, ""
    if behind < len(tokens) and tokens[behind].word == "WHERE":
        facts = read(statement, database="", dialect=Dialect(flavor=flavor.value))
        if not runs_nothing_stored(facts):
            return None
        condition = statement[tokens[behind].offset : tokens[-1].end]
    if behind < len(tokens) and tokens[behind].word == "LIKE":
        pattern = tokens[behind + 1].value
        asked = frozenset(name for name in names if is_like(name, pattern))
        is_exact = "%" not in pattern
    is_all = behind == len(tokens)
    return Shows(statement, asked, is_exact, condition, is_all) if asked else None


def is_like(name: str, pattern: str) -> bool:
    """True if a name in lower case is LIKE a pattern, letters' case aside."""
    parts = re.split(r"(\\.|[%_])", pattern.lower(), flags=re.DOTALL)
    wild = {"%": ".*", "_": "."}
    regex = "".join(wild.get(part) or re.escape(part.removeprefix("\\")) for part in parts)
    return re.fullmatch(regex, name, re.DOTALL) is not None


def _kill(statement: str, tokens: Sequence[Token], flavor: Flavor) -> ReplicaStatement | None:
    del flavor
    number = tokens[-1].text
    if not (number.isascii() and number.isdigit()):
        return None
    words = {token.word for token in tokens}
    return None if "ID" in words else Kill(statement, int(number), is_query="QUERY" in words)


_PATTERNS: Final[
    Sequence[
        tuple[re.Pattern[str], Callable[[str, Sequence[Token], Flavor], ReplicaStatement | None]]
    ]
] = (
    (
        re.compile(rf"SET @ :?= {_VALUE_SHAPES}(?: , @ :?= {_VALUE_SHAPES})*"),
        _set_variables,
    ),
    (
        re.compile("SHOW (?:(?:GLOBAL|SESSION|LOCAL) )?VARIABLES(?: LIKE '| WHERE .*)?"),
        _shows_variables,
    ),
    (
        re.compile("SHOW (?:(?:GLOBAL|SESSION|LOCAL) )?STATUS(?: LIKE '| WHERE .*)?"),
        _shows_status,
    ),
    (re.compile("KILL (?:(?:HARD|SOFT) )?(?:(?:CONNECTION|QUERY) (?:ID )?)?0"), _kill),
)
_OF_BOTH: Final = OWN | OF_SEMI_SYNC | _SHOWN_GLOBALLY
_FACTS: Final = {fact.value: fact for fact in BinlogFact}


# Reads of a text ----------------------------------------------------------------------------------


def _reads(facts: StatementFacts, flavor: Flavor) -> BinlogReads | None:
    effects = facts.effects
    if effects.stopped_at or facts.error is not None or effects.kind not in _READING:
        return None
    found = [
        BinlogRead(use.offset, use.offset + use.length, fact)
        for use in facts.system_variables
        if use.scope is not VariableScope.PERSIST
        and (fact := fact_named(use.name, flavor)) is not None
        and fact not in _SHOWN_GLOBALLY
    ]
    found += [
        BinlogRead(use.offset, use.offset + use.length, ReplicaVariable(use.name))
        for use in facts.user_variables
        if use.name in VARIABLES and not use.is_assigned
    ]
    if flavor is Flavor.MARIADB:
        for call in facts.functions:
            asked = _gtid_position(facts.text, call)
            if asked is not None:
                found.append(BinlogRead(call.offset, call.offset + call.length, asked))
    if not found:
        return None
    columns = tuple(
        (facts.place(node.at), facts.place(node.end))
        for node in walk(facts.tree)
        if isinstance(node, SelectItem) and node.alias is None
    )
    return BinlogReads(facts.text, tuple(sorted(found, key=lambda place: place.start)), columns)


_CALL: Final = re.compile(r"BINLOG_GTID_POS \( ' , [0'] \)")


def _gtid_position(text: str, call: FunctionUse) -> GtidPositionAt | None:
    """Read a call's file and position; None where it has other arguments, which the source answers."""
    if call.is_quoted or call.database or call.name.lower() != _GTID_POSITION:
        return None
    tokens = list(tokenise(text[call.offset : call.offset + call.length]))[:-1]
    if not _CALL.fullmatch(" ".join(map(_shape, tokens))):
        return None
    file, position = tokens[2].value, tokens[4].value
    if not (position.isascii() and position.isdigit()):
        return None
    return GtidPositionAt(FilePosition(file, int(position)))


def _literal(what: Asked, value: str | None) -> str:
    if value is None:
        return "NULL"
    if what in (BinlogFact.SEMI_SYNC, BinlogFact.SEMI_SYNC_SOURCE, BinlogFact.TABLES_INFO):
        return str(int(value == "ON"))
    if _PLAIN.fullmatch(value):
        return f"'{value}'"
    return f"_utf8mb4 0x{value.encode('utf-8', 'surrogateescape').hex()}"


def _user_variable(token: Token) -> str:
    return token.text[1:].strip("`'\"").lower()


def _system_variable(token: Token) -> str:
    return token.text[2:].rpartition(".")[2].strip("`").lower()
