"""The definitions of a server's tables, for a log that does not name its columns."""

from __future__ import annotations

from typing import Final

from binlane.client.account import account_at
from binlane.client.conversation import hold
from binlane.client.dialogue import Account, Dialogue, ask, log_in
from binlane.client.settings import ServerUrl
from binlane.errors import PeerError
from binlane.names import TableName, quote

# Definitions shall not depend on how the server is set up.
_SETTINGS: Final = "SET SESSION sql_mode = '', sql_quote_show_create = 1"
_DATABASES: Final = (
    "SELECT SCHEMA_NAME, DEFAULT_CHARACTER_SET_NAME FROM information_schema.SCHEMATA"
    " WHERE SCHEMA_NAME NOT IN ('information_schema', 'performance_schema', 'sys')"
)
_TABLES: Final = (
    "SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES"
    " WHERE TABLE_SCHEMA NOT IN ('information_schema', 'performance_schema', 'sys')"
    " AND TABLE_TYPE NOT LIKE '%VIEW'"
)
# Dropped since it was listed, or broken.
_UNKNOWN_TABLE: Final = 1146

Definitions = list[tuple[str, str]]


def read_schema(url: ServerUrl, password: str) -> Definitions:
    """Ask a server for its databases and tables.

    Args:
        url: The server; its account sees the tables that it has privileges on.
        password: Of the account.

    Returns:
        Statements that make them, each with its default database, for
        `SchemaCatalog.load_statements`.

    Raises:
        PeerError: If the server cannot be reached, or refuses something.
        ConfigError: If a file of certificates cannot be used.
    """
    return hold(url, _definitions(account_at(url, password)))


def _definitions(account: Account) -> Dialogue[Definitions]:
    peer = account.peer
    yield from log_in(account)
    yield from ask(_SETTINGS, peer=peer)
    found: Definitions = []
    for database, charset in (yield from _texts(_DATABASES, peer)):
        found.append(("", f"CREATE DATABASE {quote(database)} CHARACTER SET {charset}"))
    for database, table in (yield from _texts(_TABLES, peer)):
        try:
            shown = yield from _texts(f"SHOW CREATE TABLE {TableName(database, table)}", peer)
        except PeerError as error:
            if error.errno != _UNKNOWN_TABLE:
                raise
        else:
            found += [(database, row[1]) for row in shown]
    return found


def _texts(statement: str, peer: str) -> Dialogue[list[list[str]]]:
    answer = yield from ask(statement, peer=peer)
    return [] if answer is None else [[cell or "" for cell in row] for row in answer.texts()]
