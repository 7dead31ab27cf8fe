"""The definitions of a server's tables, for a log without names, and of all its objects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from binlane.client.account import account_at
from binlane.client.conversation import hold
from binlane.client.dialogue import Account, Dialogue, ask, log_in
from binlane.client.questions import creation_context
from binlane.client.settings import ServerUrl
from binlane.errors import PeerError
from binlane.names import TableName, quote
from binlane.statements.sql.catalog import ToldStatement

# Definitions shall not depend on how the server is set up.
_SETTINGS: Final = "SET SESSION sql_mode = '', sql_quote_show_create = 1"
_ROW_METADATA: Final = "SHOW GLOBAL VARIABLES LIKE 'binlog_row_metadata'"
_DATABASES: Final = (
    "SELECT SCHEMA_NAME, DEFAULT_CHARACTER_SET_NAME FROM information_schema.SCHEMATA"
    " WHERE SCHEMA_NAME NOT IN ('information_schema', 'performance_schema', 'sys')"
)
_TABLES: Final = (
    "SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES"
    " WHERE TABLE_SCHEMA NOT IN ('information_schema', 'performance_schema', 'sys')"
    " AND TABLE_TYPE NOT LIKE '%VIEW'"
)
_SEQUENCES: Final = (
    "SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES WHERE TABLE_TYPE = 'SEQUENCE'"
)
_VIEWS: Final = (
    "SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES WHERE TABLE_TYPE = 'VIEW'"
    " AND TABLE_SCHEMA NOT IN ('mysql', 'sys')"
)
_ROUTINES: Final = (
    "SELECT ROUTINE_SCHEMA, ROUTINE_NAME FROM information_schema.ROUTINES"
    " WHERE ROUTINE_TYPE = '{}' AND ROUTINE_SCHEMA NOT IN ('mysql', 'sys')"
)
_TRIGGERS: Final = (
    "SELECT TRIGGER_SCHEMA, TRIGGER_NAME FROM information_schema.TRIGGERS"
    " WHERE TRIGGER_SCHEMA <> 'sys' ORDER BY ACTION_ORDER"
)
_EVENTS: Final = "SELECT EVENT_SCHEMA, EVENT_NAME FROM information_schema.EVENTS"
_ACCOUNTS: Final = "SELECT QUOTE(User), QUOTE(Host) FROM mysql.user"
_DEFAULT_ROLES: Final = (
    "SELECT QUOTE(USER), QUOTE(HOST), QUOTE(DEFAULT_ROLE_USER), QUOTE(DEFAULT_ROLE_HOST)"
    " FROM mysql.default_roles"
)
_OTHERS: Final = (
    # The list, its name in SHOW CREATE, the column of the text there.
    (_VIEWS, "VIEW", 1),
    (_ROUTINES.format("FUNCTION"), "FUNCTION", 2),
    (_ROUTINES.format("PROCEDURE"), "PROCEDURE", 2),
    (_TRIGGERS, "TRIGGER", 2),
    (_EVENTS, "EVENT", 3),
)
_PROGRAMS: Final = frozenset(("FUNCTION", "PROCEDURE", "TRIGGER", "EVENT"))
_CONFIGURED: Final = (
    *("binlog_format", "default_storage_engine", "enforce_gtid_consistency", "gtid_mode"),
    *("innodb_autoinc_lock_mode", "log_bin_trust_function_creators", "lower_case_table_names"),
    *("sql_generate_invisible_primary_key", "sql_mode", "transaction_isolation", "tx_isolation"),
)
# Dropped since it was listed, broken, or not to be seen by this account.
_UNKNOWN_TABLE: Final = 1146
_UNTOLD: Final = frozenset(
    (_UNKNOWN_TABLE, 1044, 1064, 1141, 1142, 1143, 1227, 1305, 1356, 1360, 1539)
)

Definitions = list[ToldStatement]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerObjects:
    """A server's version, variables and objects, as far as an account sees them.

    Attributes:
        version: The server's own text, such as `10.11.6-MariaDB-log`.
        variables: Global ones that bear on logging.
        definitions: Statements that make its objects.
    """

    version: str
    variables: dict[str, str]
    definitions: Definitions


def logs_names(url: ServerUrl, password: str) -> bool:
    """Return True if a server logs the names of columns with its rows.

    Raises:
        PeerError: If the server cannot be reached.
        ConfigError: If a file of certificates cannot be used.
    """
    return hold(url, _row_metadata(account_at(url, password)))


def _row_metadata(account: Account) -> Dialogue[bool]:
    yield from log_in(account)
    rows = yield from _texts(_ROW_METADATA, account.peer)
    return any(value.upper() == "FULL" for _, value in rows)


def read_schema(url: ServerUrl, password: str) -> Definitions:
    """Ask a server for its databases and tables.

    Args:
        url: The server; its account sees the tables that it has privileges on.
        password: The password of that account.

    Returns:
        Statements that make them, for `SchemaCatalog.load_statements`.

    Raises:
        PeerError: If the server cannot be reached, or refuses something.
        ConfigError: If a file of certificates cannot be used.
    """
    return hold(url, _definitions(account_at(url, password)))


def read_objects(url: ServerUrl, password: str) -> ServerObjects:
    """Ask a server for all its tables, views, routines, triggers, events and accounts.

    Args:
        url: The server; what its account may not see is left out.
        password: The password of that account.

    Raises:
        PeerError: If the server cannot be reached, or refuses something else.
        ConfigError: If a file of certificates cannot be used.
    """
    return hold(url, _objects(account_at(url, password)))


def _objects(account: Account) -> Dialogue[ServerObjects]:
    peer = account.peer
    # Logs in, and leaves the session set.
    definitions = yield from _definitions(account)
    [[version]] = yield from _texts("SELECT VERSION()", peer)
    listed = ", ".join(f"'{name}'" for name in _CONFIGURED)
    rows = yield from _texts(f"SHOW GLOBAL VARIABLES WHERE Variable_name IN ({listed})", peer)
    variables = {row[0]: row[1] for row in rows}
    for others, kind, column in ((_SEQUENCES, "SEQUENCE", 1), *_OTHERS):
        definitions += yield from _shown(others, kind, column, peer)
    definitions += yield from _accounts(peer)
    return ServerObjects(version=version, variables=variables, definitions=definitions)


def _accounts(peer: str) -> Dialogue[Definitions]:
    """Return users and roles with their grants; none if the account may not see them."""
    names = yield from _allowed(_ACCOUNTS, peer)
    # MariaDB's roles have no host.
    accounts = [f"{user}@{host}" if host != "''" else user for user, host in names]
    found = [
        ToldStatement("", f"CREATE {'USER' if '@' in account else 'ROLE'} IF NOT EXISTS {account}")
        for account in accounts
    ]
    for account in accounts:
        grants = yield from _allowed(f"SHOW GRANTS FOR {account}", peer)
        found += [ToldStatement("", text) for [text] in grants]
    for user, host, role, of in (yield from _allowed(_DEFAULT_ROLES, peer)):
        found.append(ToldStatement("", f"SET DEFAULT ROLE {role}@{of} TO {user}@{host}"))
    return found


def _shown(listing: str, kind: str, column: int, peer: str) -> Dialogue[Definitions]:
    found: Definitions = []
    for database, name in (yield from _texts(listing, peer)):
        shown = yield from _allowed(f"SHOW CREATE {kind} {TableName(database, name)}", peer)
        # The text of a routine is NULL for who may not see it.
        found += [
            ToldStatement(
                *(database, row[column]),
                creation_context(row, column) if kind in _PROGRAMS else None,
            )
            for row in shown
            if row[column]
        ]
    return found


def _allowed(statement: str, peer: str) -> Dialogue[list[list[str]]]:
    """Return the rows of a query; none if the account may not run it or its object is gone."""
    try:
        return (yield from _texts(statement, peer))
    except PeerError as error:
        if error.errno not in _UNTOLD:
            raise
        return []


def _definitions(account: Account) -> Dialogue[Definitions]:
    peer = account.peer
    yield from log_in(account)
    yield from ask(_SETTINGS, peer=peer)
    found: Definitions = []
    for database, charset in (yield from _texts(_DATABASES, peer)):
        text = f"CREATE DATABASE {quote(database)} CHARACTER SET {charset}"
        found.append(ToldStatement("", text))
    for database, table in (yield from _texts(_TABLES, peer)):
        try:
            shown = yield from _texts(f"SHOW CREATE TABLE {TableName(database, table)}", peer)
        except PeerError as error:
            if error.errno != _UNKNOWN_TABLE:
                raise
        else:
            found += [ToldStatement(database, row[1]) for row in shown]
    return found


def _texts(statement: str, peer: str) -> Dialogue[list[list[str]]]:
    answer = yield from ask(statement, peer=peer)
    return [] if answer is None else [[cell or "" for cell in row] for row in answer.texts()]
