"""What servers answer with 1064, and what they take: measured, not thought up.

`tests/vectors/accepted.tsv.gz` holds statements on rows and those of sessions and administrators,
well-formed ones and such with a token left out, added or exchanged, with what PREPARE said on
MariaDB 10.11, MariaDB 11.8 and MySQL 9.7 (`n` is error 1064, `y` anything else).
"""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Final

import pytest

from binlane.statements.sql.parser import Stopped, parse
from binlane.statements.sql.servers import Dialect
from binlane.statements.sql.tokens import SqlSyntaxError

_FILE: Final = Path(__file__).parents[4] / "vectors" / "accepted.tsv.gz"
_SERVERS: Final = (
    Dialect(flavor="mariadb", version=(10, 11, 14)),
    Dialect(flavor="mariadb", version=(11, 8, 6)),
    Dialect(flavor="mysql", version=(9, 7, 4)),
)
_KNOWN: Final = frozenset(
    {
        # Errors that a server finds before it reads to the end.
        "CALL p ( a AS b ) SET )",
        "CALL p(a AS )",
        "CALL p(a AS b FROM )",
        "SELECT CAST(a AS CHAR(10 ) CHARACTER SET t utf8mb4 ) FROM t",
        # CONTAINS has its arguments in the grammar.
        "SELECT CONTAINS(? a , b ) FROM t",
    }
)


def _cases() -> list[tuple[str, str]]:
    lines = gzip.decompress(_FILE.read_bytes()).decode().splitlines()
    return [(flags, statement) for flags, _, statement in (line.partition("\t") for line in lines)]


def _accepts(statement: str, dialect: Dialect) -> bool:
    try:
        parse(statement, dialect)
    except (Stopped, SqlSyntaxError):
        return False
    return True


@pytest.mark.parametrize("server", range(len(_SERVERS)))
def test_a_server_takes_what_it_took_when_asked(server: int) -> None:
    wrong = [
        statement
        for flags, statement in _cases()
        if statement not in _KNOWN
        and _accepts(statement, _SERVERS[server]) != (flags[server] == "y")
    ]
    assert wrong == []


def test_without_a_server_both_grammars_hold() -> None:
    # What one of them reserves or counts, and the other does not.
    known = _KNOWN | {
        "SELECT SQL_CACHE FROM t",
        "UPDATE t SET n = COLUMN_ADD ( b , 1 ) WHERE a = 1",
    }
    wrong = [
        statement
        for flags, statement in _cases()
        if statement not in known and "y" in flags and not _accepts(statement, Dialect())
    ]
    assert wrong == []
