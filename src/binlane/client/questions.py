"""Questions to a server about its objects, one at a time, and the reading of its answers.

A question is a generator: it yields statements and is given their rows; who sends them, in which
session, is its driver. Errors of the server are thrown into it. Nothing here waits or knows of
other questions' answers, but for the names that `Listed` has.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from binlane.client.needed_objects import (
    Need,
    Question,
    Topic,
    needs_of_body,
    needs_of_table,
    questions_of,
)
from binlane.errors import StatementError
from binlane.log.codec.client_text import SWE7, text_telling
from binlane.log.codec.types import Flavor
from binlane.names import TableName, quote
from binlane.statements.sql.accounts import AccountName, Grantee
from binlane.statements.sql.catalog import SchemaCatalog
from binlane.statements.sql.object_store import ObjectStore
from binlane.statements.sql.schema import CreationContext, Routine, small
from binlane.statements.sql.servers import Version

Rows = list[list[str | None]]
Asking = Generator[str, Rows, "Answer"]
"""Yields statements, is sent their rows, returns what they tell."""

ALL_ROWS: Final = " LIMIT 18446744073709551615"
"""Ends a question to the source in a client's session, where the client's sql_select_limit would
hold back rows; one that has a single row ends with LIMIT 1."""

_NO_SUCH_TABLE: Final = 1146
_NO_SUCH_ROUTINE: Final = 1305
_NO_SUCH_TRIGGER: Final = 1360
_BAD_DATABASE: Final = 1049
_CANNOT_LOAD: Final = 1728
_NOT_SHOWN: Final = frozenset((1253, 1267, 1270, 1271, 1462))
"""Errors of SHOW CREATE of a view that renames have led to itself, or whose collations do not go with
those of who asks."""
_BROKEN: Final = frozenset(
    (1016, 1017, 1030, 1033, 1034, 1035, 1168, 1194, 1195, 1286, 1812, 1814, 1932)
)
"""Errors of tables that are there, and that nobody can open until they are mended; as are those that
storage engines have of their own, below the servers'."""
_OWN_ERROR_MIN: Final = 1000
"""The first of the servers' own errors."""
_ACCESS_DENIED: Final = 1142
_ABSENT: Final = frozenset((_NO_SUCH_TABLE, _NO_SUCH_ROUTINE, _NO_SUCH_TRIGGER, _BAD_DATABASE))
_DENIED: Final = frozenset((1044, 1045, 1141, _ACCESS_DENIED, 1143, 1227))
_HIDDEN: Final = _DENIED | {_NO_SUCH_TABLE, 1356}
"""Errors of who may not see a table of the server's own, and of one that has been moved away."""
_NOT_OF_OBJECT: Final = _DENIED | {None, 1053, 1205, 1213, 1317, 1927, 1969, 3024}
"""Errors that say nothing of what is asked about: of rights, of waiting, of the end of the session."""
_SQL_MODE: Final = 1
"""The column of SHOW CREATE that has the sql_mode, for all kinds of programs."""
_PROGRAM: Final = 2
"""The column of SHOW CREATE FUNCTION, PROCEDURE and TRIGGER that has the text."""
_CLIENT_CHARSET: Final = 1
_COLLATION_CONNECTION: Final = 2
_DATABASE_COLLATION: Final = 3
"""The column's distance behind that of the text."""
_SYSTEM: Final = frozenset(("information_schema", "performance_schema", "mysql", "sys"))
_CONFIGURED: Final = (
    *("binlog_format", "character_set_server", "default_storage_engine"),
    *("enforce_gtid_consistency", "gtid_mode", "innodb_autoinc_lock_mode"),
    *("log_bin_trust_function_creators", "lower_case_table_names"),
    *("sql_generate_invisible_primary_key", "sql_mode", "transaction_isolation", "tx_isolation"),
)
"""Global variables that bear on logging."""


class NotUnderstoodError(StatementError):
    """A server's answer about an object is not understood; asking again gives the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A server's answer about objects.

    Attributes:
        objects: The objects themselves; nothing where there is none.
        needs: The further needs of a statement that uses it.
        triggers: The names of each table's triggers, in the order in which they run.
        tables: The table that each trigger belongs to.
        routines: Functions and procedures: True for a function, and the name in small letters.
        children: The tables that have foreign keys to each table.
    """

    objects: ObjectStore = field(default_factory=ObjectStore)
    needs: tuple[Need, ...] = ()
    triggers: Mapping[TableName, tuple[TableName, ...]] = field(default_factory=dict)
    tables: Mapping[TableName, TableName] = field(default_factory=dict)
    routines: frozenset[tuple[bool, TableName]] = frozenset()
    children: Mapping[TableName, tuple[TableName, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class AskingContext:
    """The known facts on which questions hang.

    Attributes:
        flavor: The flavor of the server.
        version: The version of the server.
        store: Databases, settings and accounts; not to be changed.
        programs: The answer to PROGRAMS, by database.
        users: The users whose accounts in `store` are not as they are any more; None: all.
        sql_mode: The sql_mode of the session that asks: SHOW CREATE quotes the names of tables and
            views by it.
    """

    flavor: Flavor
    version: Version
    store: ObjectStore
    programs: Mapping[str, Answer]
    users: frozenset[str] | None = None
    sql_mode: str = ""

    @property
    def is_mariadb(self) -> bool:
        """True if the server is a MariaDB."""
        return self.flavor is Flavor.MARIADB

    @property
    def ignores_case(self) -> bool:
        """True if names are kept in lower case."""
        return self.store.settings.get("lower_case_table_names", "0") != "0"

    def empty(self, database: str = "") -> SchemaCatalog:
        """A catalog for the objects of one answer."""
        databases = {database: self.store.databases.get(database)} if database else {}
        store = ObjectStore(
            databases=databases,
            accounts=self.store.accounts.copy(),
            settings=self.store.settings.copy(),
        )
        return SchemaCatalog(flavor=self.flavor, server_version=self.version, store=store)


def is_of_server(name: TableName) -> bool:
    """True if every server has the object, so that no question about it is needed."""
    return name.database.lower() in _SYSTEM


def asking(question: Question, asked: AskingContext) -> Asking:
    """Begin a question.

    Raises:
        StatementError: What the server says, or that its answer is not understood.
    """
    return _ASKING[question.topic](question.name, asked)


# Objects ------------------------------------------------------------------------------------------


def _table(name: TableName, asked: AskingContext) -> Asking:
    try:
        text = yield from _created("TABLE", 1, name)
    except StatementError as error:
        if error.errno in _BROKEN or 1 < error.errno < _OWN_ERROR_MIN:
            raise NotUnderstoodError(str(error)) from None
        if error.errno not in _NOT_SHOWN:
            raise
        text = yield from _listed_view(name, asked)
    if text is None:
        return Answer()
    if _is_sequence(text):
        text = (yield from _created("SEQUENCE", 1, name)) or text
    catalog = _applied(asked, name.database, text)
    if catalog.store.temporary:  # of the session that asks
        return Answer(objects=ObjectStore(temporary=catalog.store.temporary))
    view = catalog.store.views.get(name)
    if view is not None:
        needs = questions_of(view.facts, view.database or name.database)
    else:
        table = catalog.store.tables.get(name)
        if table is None:
            raise _misread(text)
        needs = needs_of_table(table)
    return Answer(
        objects=ObjectStore(tables=catalog.store.tables, views=catalog.store.views), needs=needs
    )


def _listed_view(name: TableName, asked: AskingContext) -> Generator[str, Rows, str | None]:
    """Return the CREATE VIEW of a view that the server does not show; None if there is none.

    Who wants to drop or to replace the view has it to be known.
    """
    algorithm = "ALGORITHM" if asked.is_mariadb else "'UNDEFINED'"
    rows = yield (
        f"SELECT {algorithm}, DEFINER, SECURITY_TYPE, VIEW_DEFINITION, CHECK_OPTION"  # noqa: S608  # names are hexadecimal
        f" FROM information_schema.VIEWS WHERE TABLE_SCHEMA = {text_literal(name.database)}"
        f" AND TABLE_NAME = {text_literal(name.table)}"
    )
    if not rows:
        return None
    ((algorithm, definer, security, query, check),) = ([one or "" for one in row] for row in rows)
    if not query:
        raise hidden("VIEW", name)
    user, has_host, host = definer.rpartition("@")
    account = f"{quote(user)}@{quote(host)}" if has_host else quote(definer)
    return (
        f"CREATE ALGORITHM={algorithm} DEFINER={account} SQL SECURITY {security} VIEW {name}"
        f" AS {query}" + ("" if check == "NONE" else f" WITH {check} CHECK OPTION")
    )


def _triggers(table: TableName, asked: AskingContext) -> Asking:
    catalog = asked.empty(table.database)
    for name in asked.programs[table.database].triggers.get(table, ()):
        row = yield from _shown("TRIGGER", _PROGRAM, name)
        if row is not None:
            text = _program(row, asked)
            _apply(catalog, table.database, text, creation_context(row, _PROGRAM))
    triggers = catalog.store.triggers.get(table, ())
    return Answer(
        objects=ObjectStore(triggers={table: triggers} if triggers else {}),
        needs=tuple(need for one in triggers for need in needs_of_body(one, table.database)),
    )


def _function(name: TableName, asked: AskingContext) -> Asking:
    return (yield from _routine("FUNCTION", name, asked))


def _procedure(name: TableName, asked: AskingContext) -> Asking:
    return (yield from _routine("PROCEDURE", name, asked))


def _routine(kind: str, name: TableName, asked: AskingContext) -> Asking:
    try:
        row = yield from _shown(kind, _PROGRAM, name)
    except StatementError as error:
        if error.errno in _NOT_OF_OBJECT:
            raise
        # It is there, and nobody can run it.
        return _unread(kind, name, "the server does not tell what it is")
    if row is None:
        return Answer()
    catalog = asked.empty(name.database)
    # That of the database when the routine was made.
    collation = row[_PROGRAM + _DATABASE_COLLATION] or ""
    catalog.store.databases[name.database] = collation.partition("_")[0]
    context = creation_context(row, _PROGRAM)
    catalog.apply(_program(row, asked), database=name.database, context=context)
    routine = catalog.store.routines.get((kind == "FUNCTION", small(name)))
    if routine is None or catalog.problems:
        problem = next(iter(catalog.problems), None)
        return _unread(kind, name, "it is another one" if problem is None else problem.message)
    return Answer(
        objects=ObjectStore(routines=catalog.store.routines),
        needs=needs_of_body(routine, name.database),
    )


def _program(row: Sequence[str | None], asked: AskingContext) -> str:
    """Return the text of a routine or trigger; MariaDB gives ASCII bytes of swe7 as letters."""
    text = row[_PROGRAM] or ""
    is_swe7 = asked.is_mariadb and row[_PROGRAM + _CLIENT_CHARSET] == SWE7
    return text_telling(text, SWE7) or text if is_swe7 else text


def _unread(kind: str, name: TableName, why: str) -> Answer:
    """Return the answer for a routine of which only the name is known; its callers get an error."""
    is_function = kind == "FUNCTION"
    routine = Routine(name=name, is_function=is_function, parameters=(), body="", unread=why)
    return Answer(objects=ObjectStore(routines={(is_function, small(name)): routine}))


def _event(name: TableName, asked: AskingContext) -> Asking:
    # Of the other table MariaDB shows only what the account may change.
    database, event, table = (
        ("db", "name", "mysql.event")
        if asked.is_mariadb
        else ("EVENT_SCHEMA", "EVENT_NAME", "information_schema.EVENTS")
    )
    rows = yield from _allowed(
        f"SELECT {database}, {event} FROM {table}"  # noqa: S608  # names are hexadecimal
        f" WHERE {database} = {text_literal(name.database)}"
        f" AND {event} = {text_literal(name.table)}",
        (_NO_SUCH_TABLE,),
    )
    is_there = any(small(_name(row)) == small(name) for row in rows)
    return Answer(objects=ObjectStore(events={small(name)} if is_there else set()))


def _created(kind: str, column: int, name: TableName) -> Generator[str, Rows, str | None]:
    """Return the CREATE statement of an object; None if there is none."""
    row = yield from _shown(kind, column, name)
    return None if row is None else row[column]


def _shown(
    kind: str, column: int, name: TableName
) -> Generator[str, Rows, list[str | None] | None]:
    """Ask SHOW CREATE; return its row, the statement in one of its columns; None if there is no object."""
    try:
        rows = yield f"SHOW CREATE {kind} {name}"
    except StatementError as error:
        if error.errno in _ABSENT:
            return None
        raise
    if not rows or rows[0][column] is None:
        raise hidden(kind, name)
    return rows[0]


def creation_context(row: Sequence[str | None], column: int) -> CreationContext:
    """Return the context in which a program is read and runs, from SHOW CREATE's row.

    Args:
        row: The row of SHOW CREATE FUNCTION, PROCEDURE, TRIGGER or EVENT.
        column: The number of its column that is the text.
    """
    collation = row[column + _COLLATION_CONNECTION] or ""
    return CreationContext(sql_mode=row[_SQL_MODE] or "", collation=collation)


def hidden(kind: str, name: TableName) -> StatementError:
    """Return the error for an object that exists and whose definition is hidden."""
    return StatementError(
        f"the account may not see the definition of {kind} {name}",
        errno=_ACCESS_DENIED,
        sqlstate="42000",
    )


def _is_sequence(text: str) -> bool:
    return "SEQUENCE=1" in text.rpartition(")")[2].replace(" ", "").upper()


# Names --------------------------------------------------------------------------------------------


def _programs(name: TableName, _: AskingContext) -> Asking:
    database = name.database
    rows = yield (
        "SELECT EVENT_OBJECT_SCHEMA, EVENT_OBJECT_TABLE, TRIGGER_NAME FROM"  # noqa: S608  # as above
        f" information_schema.TRIGGERS WHERE EVENT_OBJECT_SCHEMA = {text_literal(database)}"
        " ORDER BY EVENT_OBJECT_TABLE, EVENT_MANIPULATION, ACTION_TIMING, ACTION_ORDER"
    )
    triggers: dict[TableName, tuple[TableName, ...]] = {}
    tables: dict[TableName, TableName] = {}
    for row in rows:
        if row[0] == database:
            table, trigger = _name(row), TableName(database, row[2] or "")
            # One that is for several events is listed for each of them.
            if trigger not in tables:
                triggers[table] = (*triggers.get(table, ()), trigger)
                tables[trigger] = table
    rows = yield from _allowed(
        "SELECT ROUTINE_SCHEMA, ROUTINE_NAME, ROUTINE_TYPE FROM information_schema.ROUTINES"  # noqa: S608  # as above
        f" WHERE ROUTINE_SCHEMA = {text_literal(database)}",
        (_CANNOT_LOAD,),  # nobody can run any then
    )
    routines = {(row[2] == "FUNCTION", small(_name(row))) for row in rows if row[0] == database}
    return Answer(triggers=triggers, tables=tables, routines=frozenset(routines))


def _names(name: TableName, _: AskingContext) -> Asking:
    rows = yield (
        "SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES"  # noqa: S608  # as above
        f" WHERE TABLE_SCHEMA = {text_literal(name.database)}"
    )
    names = [_name(row) for row in rows if row[0] == name.database]
    return Answer(needs=tuple(Need(Question(Topic.TABLE, one)) for one in names))


def _keys(_: TableName, asked: AskingContext) -> Asking:
    rows = None
    if asked.is_mariadb:
        # InnoDB keeps their names as those of files. The other way MariaDB opens every table.
        try:
            rows = yield (
                "SELECT "  # noqa: S608  # all of it stands here
                + ", ".join(
                    "CONVERT(CAST(SUBSTRING_INDEX("
                    f"{column}, '/', {number}) AS BINARY) USING filename)"
                    for column in ("FOR_NAME", "REF_NAME")
                    for number in (1, -1)
                )
                + " FROM information_schema.INNODB_SYS_FOREIGN"
            )
        except StatementError as error:
            if error.errno not in _DENIED:
                raise
    if rows is None:
        rows = yield (
            "SELECT CONSTRAINT_SCHEMA, TABLE_NAME, UNIQUE_CONSTRAINT_SCHEMA, REFERENCED_TABLE_NAME"
            " FROM information_schema.REFERENTIAL_CONSTRAINTS"
        )
    children: dict[TableName, dict[TableName, None]] = {}
    for row in rows:
        children.setdefault(_name(row[2:]), {})[_name(row)] = None
    return Answer(children={parent: tuple(sorted(found)) for parent, found in children.items()})


# The whole server ---------------------------------------------------------------------------------


def _databases(_: TableName, __: AskingContext) -> Asking:
    rows = yield "SELECT SCHEMA_NAME, DEFAULT_CHARACTER_SET_NAME FROM information_schema.SCHEMATA"
    found = {row[0] or "": row[1] for row in rows}
    return Answer(objects=ObjectStore(databases=found))


def _settings(_: TableName, __: AskingContext) -> Asking:
    listed = ", ".join(f"'{name}'" for name in _CONFIGURED)
    rows = yield f"SHOW GLOBAL VARIABLES WHERE Variable_name IN ({listed})"
    told = {(row[0] or "").lower(): row[1] or "" for row in rows}
    if "transaction_isolation" in told:
        told.pop("tx_isolation", None)
    return Answer(objects=ObjectStore(settings=told))


def _loadable(_: TableName, __: AskingContext) -> Asking:
    rows = yield from _allowed("SELECT name FROM mysql.func")
    return Answer(objects=ObjectStore(loadable={(row[0] or "").lower() for row in rows}))


def _accounts(_: TableName, asked: AskingContext) -> Asking:
    """Return users and roles with their grants; none if the account may not see them."""
    rows = yield from _allowed("SELECT User, Host, QUOTE(User), QUOTE(Host) FROM mysql.user")
    catalog = asked.empty()
    catalog.store.accounts = {}
    changed: list[str] = []
    for user, host, quoted_user, quoted_host in rows:
        # MariaDB's roles have no host.
        account = f"{quoted_user}@{quoted_host}" if host else quoted_user or ""
        name = AccountName(user or "", host or "")
        known = asked.store.accounts.get(name)
        if known is None or _is_touched(name, known, asked.users):
            changed.append(account)
            _apply(catalog, "", f"CREATE {'USER' if host else 'ROLE'} IF NOT EXISTS {account}")
        else:
            catalog.store.accounts[name] = known
    for account in changed:
        for row in (yield from _allowed(f"SHOW GRANTS FOR {account}")):
            _apply(catalog, "", row[0] or "")
    if not asked.is_mariadb:
        rows = yield from _allowed(
            "SELECT QUOTE(USER), QUOTE(HOST), QUOTE(DEFAULT_ROLE_USER), QUOTE(DEFAULT_ROLE_HOST)"
            " FROM mysql.default_roles"
        )
        for user, host, role, of in rows:
            _apply(catalog, "", f"SET DEFAULT ROLE {role}@{of} TO {user}@{host}")
    return Answer(objects=ObjectStore(accounts=catalog.store.accounts))


def _is_touched(name: AccountName, known: Grantee, users: frozenset[str] | None) -> bool:
    """True if an account may have other rights than are known."""
    if users is None or name.user in users:
        return True
    return any(role.user in users for role in (*known.roles, *known.default_roles))


def _allowed(statement: str, errnos: Container[int | None] = _HIDDEN) -> Generator[str, Rows, Rows]:
    """The rows of a question; none where the server refuses to answer by some errors."""
    try:
        return (yield statement)
    except StatementError as error:
        if error.errno in errnos:
            return []
        raise


_ASKING: Final[Mapping[Topic, Callable[[TableName, AskingContext], Asking]]] = MappingProxyType(
    {
        Topic.TABLE: _table,
        Topic.TRIGGERS: _triggers,
        Topic.FUNCTION: _function,
        Topic.PROCEDURE: _procedure,
        Topic.EVENT: _event,
        Topic.PROGRAMS: _programs,
        Topic.NAMES: _names,
        Topic.KEYS: _keys,
        Topic.DATABASES: _databases,
        Topic.SETTINGS: _settings,
        Topic.LOADABLE: _loadable,
        Topic.ACCOUNTS: _accounts,
    }
)


def _applied(asked: AskingContext, database: str, text: str) -> SchemaCatalog:
    catalog = asked.empty(database)
    _apply(catalog, database, text, CreationContext(sql_mode=asked.sql_mode))
    return catalog


def _apply(
    catalog: SchemaCatalog, database: str, text: str, context: CreationContext | None = None
) -> None:
    catalog.apply(text, database=database, context=context)
    if catalog.problems:
        raise _misread(text)


def _misread(text: str) -> StatementError:
    return NotUnderstoodError(
        f"what the source says of an object is not understood: {text[:200]}",
        hint="SET SESSION binlog_format = 'ROW' lets what uses it run",
    )


def _name(row: Sequence[str | None]) -> TableName:
    return TableName(row[0] or "", row[1] or "")


def text_literal(value: str) -> str:
    """A literal that means the same under every sql_mode, and that the servers look names up by."""
    return f"_utf8mb4 0x{value.encode().hex()}" if value else "''"
