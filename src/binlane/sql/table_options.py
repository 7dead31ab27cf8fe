"""What CREATE TABLE and ALTER TABLE say of a table beside its columns and keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from binlane.sql.column_attributes import text_of
from binlane.sql.cursor import Cursor, split
from binlane.sql.tokens import Token

_QUERY_WORDS: Final = frozenset({"SELECT", "AS", "IGNORE", "REPLACE", "TABLE", "VALUES"})
_ENGINE_NAMES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "MERGE": "MRG_MYISAM",
        "HEAP": "MEMORY",
        "INNOBASE": "INNODB",
        "NDB": "NDBCLUSTER",
    }
)
_PRINTED_ENGINES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "INNODB": "InnoDB",
        "MYISAM": "MyISAM",
        "ARIA": "Aria",
        "MRG_MYISAM": "MRG_MyISAM",
        "NDBCLUSTER": "ndbcluster",
    }
)
# Options with one value that the servers print, in the order in which they do.
PRINTED_OPTIONS: Final = (
    *("ENGINE", "AUTO_INCREMENT", "CHARSET", "COLLATE", "MIN_ROWS", "MAX_ROWS", "AVG_ROW_LENGTH"),
    *("PACK_KEYS", "STATS_PERSISTENT", "STATS_AUTO_RECALC", "STATS_SAMPLE_PAGES", "CHECKSUM"),
    *("PAGE_CHECKSUM", "DELAY_KEY_WRITE", "ROW_FORMAT", "TRANSACTIONAL", "KEY_BLOCK_SIZE"),
    *("UNION", "INSERT_METHOD", "COMMENT", "CONNECTION"),
)
_CHARSET_WORDS: Final = (("CHARACTER", "SET"), ("CHAR", "SET"), ("CHARSET",))


@dataclass(slots=True, kw_only=True)
class TableOptions:
    """The options of one statement.

    Attributes:
        engine: In capitals; None if it names none.
        is_transactional: Of TRANSACTIONAL; None if it is not said.
        union: Names of UNION; None without.
        partitioning: Text from PARTITION BY to its end; None without.
        removes_partitioning: REMOVE PARTITIONING.
        given: Options with their values as given, by the names of `PRINTED_OPTIONS`.
        query_offset: Where the query of CREATE … SELECT begins; None without one.
    """

    engine: str | None = None
    is_transactional: bool | None = None
    union: tuple[tuple[str | None, str], ...] | None = None
    partitioning: str | None = None
    removes_partitioning: bool = False
    given: dict[str, str] = field(default_factory=dict)
    query_offset: int | None = None


def engine_name(name: str) -> str:
    """An engine's name in capitals, one for all that mean the same."""
    upper = name.upper()
    return _ENGINE_NAMES.get(upper, upper)


def printed_engine(engine: str) -> str:
    """An engine's name as the servers print it."""
    return _PRINTED_ENGINES.get(engine, engine)


def read_options(tokens: Sequence[Token], statement: str) -> TableOptions:
    """Read table options, partitions and where a query begins.

    Args:
        tokens: Behind the list of columns, or of one action of ALTER TABLE.
        statement: The whole text.

    Raises:
        Stopped: If a parenthesis has no partner.
    """
    found = TableOptions()
    cursor = Cursor(tokens)
    while not cursor.is_at_end:
        if _is_at_query(cursor):
            _read_query_start(cursor, found)
            break
        if cursor.accept("PARTITION", "BY"):
            _read_partitioning(cursor, found, statement)
        elif not _read_option(cursor, found, statement):
            cursor.group() if cursor.token.text == "(" else cursor.advance()
    return found


def _read_option(cursor: Cursor, found: TableOptions, statement: str) -> bool:
    if cursor.accept("UNION"):
        cursor.accept_operator("=")
        found.union = tuple(Cursor(part).qualified_name() for part in split(cursor.group()) if part)
    elif cursor.accept("REMOVE", "PARTITIONING"):
        found.removes_partitioning = True
    elif cursor.word in {"ENGINE", "TYPE"} and cursor.ahead(1).word != "COMMENT":
        cursor.advance()
        cursor.accept_operator("=")
        name = cursor.advance().value
        found.engine = engine_name(name)
        found.given["ENGINE"] = printed_engine(found.engine)
    elif any(cursor.accept(*words) for words in _CHARSET_WORDS):
        found.given["CHARSET"] = _value(cursor, statement)
    elif cursor.word in PRINTED_OPTIONS:
        name = cursor.advance().word
        found.given[name] = _value(cursor, statement)
        if name == "TRANSACTIONAL":
            found.is_transactional = found.given[name] != "0"
    else:
        return False
    return True


def _value(cursor: Cursor, statement: str) -> str:
    cursor.accept_operator("=")
    token = cursor.advance()
    return statement[token.offset : token.end]


def _read_partitioning(cursor: Cursor, found: TableOptions, statement: str) -> None:
    start = cursor.index - 2
    while not cursor.is_at_end and not _is_at_query(cursor):
        cursor.group() if cursor.token.text == "(" else cursor.advance()
    found.partitioning = text_of(
        [token for token in cursor.since(start) if token.text != ";"], statement
    )


def _is_at_query(cursor: Cursor) -> bool:
    """Whether the query of CREATE … SELECT begins here."""
    if cursor.word in _QUERY_WORDS:
        return True
    if cursor.word == "WITH":
        return cursor.ahead(1).word != "SYSTEM" and cursor.ahead(1).word != "PARSER"
    count = 0
    while cursor.ahead(count).text == "(":
        count += 1
    return cursor.ahead(count).word in {"SELECT", "WITH", "TABLE", "VALUES"}


def _read_query_start(cursor: Cursor, found: TableOptions) -> None:
    cursor.accept_any(("IGNORE", "REPLACE"))
    cursor.accept("AS")
    found.query_offset = cursor.token.offset
