"""The servers' reasons why a statement is unsafe to log as its text, and where texts raise them.

The members stand in the servers' bit order, which is the order of several notes or errors: what
only one server knows stands where its neighbours leave room, so that one order serves both.

A text is that of a statement, a view, routine, trigger or DEFAULT. The servers set these reasons
while they parse, or when they begin to execute a command; those that depend on tables are found in
`resolution`, those that depend on the session in `procedure`. Of columns whose DEFAULT may give
another value on a replica, MariaDB looks at all those of a written table, whatever the statement
does to it; MySQL at those that the statement uses, and inside of routines and triggers at all. Both
measured.

Source: sql_lex.h, sql_lex.cc and the message files; `set_stmt_unsafe` in item_create.cc and
sql_yacc.yy, and the NOT_IN_BINLOG flags of sys_vars.cc, of MariaDB 10.11/11.8 and MySQL 9.7.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum, auto
from types import MappingProxyType
from typing import Final

from binlane.names import TableName
from binlane.statements.policy.server import Server
from binlane.statements.sql.facts import (
    FunctionUse,
    Shift,
    StatementFacts,
    SystemVariableUse,
    VariableScope,
)
from binlane.statements.sql.object_store import Objects
from binlane.statements.sql.schema import Table
from binlane.statements.sql.servers import Fact
from binlane.statements.sql.statement_kinds import StatementKind
from binlane.statements.sql.tree.expressions import Default, told, walk
from binlane.statements.sql.tree.statements import Delete, Insert, Update


class Reason(Enum):
    """Unsafe reasons by what follows `ER_BINLOG_UNSAFE_`, in bit order."""

    LIMIT = auto()
    INSERT_DELAYED = auto()
    SYSTEM_TABLE = auto()
    AUTOINC_COLUMNS = auto()
    UDF = auto()
    SYSTEM_VARIABLE = auto()
    SYSTEM_FUNCTION = auto()
    NONTRANS_AFTER_TRANS = auto()
    MULTIPLE_ENGINES_AND_SELF_LOGGING_ENGINE = auto()
    MIXED_STATEMENT = auto()
    INSERT_IGNORE_SELECT = auto()
    INSERT_SELECT_UPDATE = auto()
    WRITE_AUTOINC_SELECT = auto()
    REPLACE_SELECT = auto()
    CREATE_IGNORE_SELECT = auto()
    CREATE_REPLACE_SELECT = auto()
    CREATE_SELECT_AUTOINC = auto()
    UPDATE_IGNORE = auto()
    INSERT_TWO_KEYS = auto()
    AUTOINC_NOT_FIRST = auto()
    AUTOINC_LOCK_MODE = auto()
    """MariaDB's only; it is told as SYSTEM_VARIABLE."""
    FULLTEXT_PLUGIN = auto()
    SKIP_LOCKED = auto()
    NOWAIT = auto()
    XA = auto()
    DEFAULT_EXPRESSION_IN_SUBSTATEMENT = auto()
    ACL_TABLE_READ_IN_DML_DDL = auto()
    CREATE_SELECT_WITH_GIPK = auto()

    @property
    def position(self) -> int:
        """The reason's place in the servers' bit order, from 0."""
        return self.value - 1


UNSAFE_STATEMENT: Final = (
    "Unsafe statement written to the binary log using statement format since "
    "BINLOG_FORMAT = STATEMENT. "
)


def symbol(reason: Reason) -> str:
    """The name that the servers' notes and messages give a reason."""
    told = Reason.SYSTEM_VARIABLE if reason is Reason.AUTOINC_LOCK_MODE else reason
    if told is Reason.CREATE_SELECT_WITH_GIPK:
        return "ER_CREATE_SELECT_WITH_GIPK_DISALLOWED_IN_SBR"
    return f"ER_BINLOG_UNSAFE_{told.name}"


def text(reason: Reason, server: Server) -> str:
    """Return the servers' text of a reason, as it stands at the end of a note or error."""
    if server.is_mariadb:
        return _MARIADB_TEXTS.get(reason) or _TEXTS[reason].format(
            on="slave", pair="master and the slave"
        )
    if server.has(Fact.SOURCES_AND_REPLICAS):
        said = _TEXTS[reason].format(on="replica", pair="source and the replica")
    else:
        said = _TEXTS[reason].format(on="slave", pair="master and the slave")
    return said if reason is Reason.INSERT_TWO_KEYS else f"{said}."


def note(reason: Reason, server: Server) -> str:
    """The whole text of note 1592."""
    return UNSAFE_STATEMENT + text(reason, server)


def _by_order(statement: str, what: str) -> str:
    return (
        f"{statement} is unsafe because the order in which rows are {what}. "
        "This order cannot be predicted and may differ on {pair}"
    )


def _by_order_of_query(statement: str, done: str) -> str:
    return _by_order(
        statement, f"retrieved by the SELECT determines which (if any) rows are {done}"
    )


_SYSTEM_VARIABLE: Final = (
    "Statement is unsafe because it uses a system variable that may have a different value "
    "on the {on}"
)


# Without the full stop that MySQL adds to all but one.
_TEXTS: Final[Mapping[Reason, str]] = MappingProxyType(
    {
        Reason.LIMIT: (
            "The statement is unsafe because it uses a LIMIT clause. This is unsafe because the "
            "set of rows included cannot be predicted"
        ),
        Reason.INSERT_DELAYED: (
            "The statement is unsafe because it uses INSERT DELAYED. This is unsafe because the "
            "times when rows are inserted cannot be predicted"
        ),
        Reason.SYSTEM_TABLE: (
            "The statement is unsafe because it uses the general log, slow query log, or "
            "performance_schema table(s). This is unsafe because system tables may differ on {on}s"
        ),
        Reason.AUTOINC_COLUMNS: (
            "Statement is unsafe because it invokes a trigger or a stored function that inserts "
            "into an AUTO_INCREMENT column. Inserted values cannot be logged correctly"
        ),
        Reason.UDF: (
            "Statement is unsafe because it uses a UDF which may not return the same value on "
            "the {on}"
        ),
        Reason.SYSTEM_VARIABLE: _SYSTEM_VARIABLE,
        Reason.SYSTEM_FUNCTION: (
            "Statement is unsafe because it uses a system function that may return a different "
            "value on the {on}"
        ),
        Reason.NONTRANS_AFTER_TRANS: (
            "Statement is unsafe because it accesses a non-transactional table after accessing a "
            "transactional table within the same transaction"
        ),
        Reason.MULTIPLE_ENGINES_AND_SELF_LOGGING_ENGINE: (
            "Mixing self-logging and non-self-logging engines in a statement is unsafe"
        ),
        Reason.MIXED_STATEMENT: (
            "Statement accesses nontransactional table as well as transactional or temporary "
            "table, and writes to any of them"
        ),
        Reason.INSERT_IGNORE_SELECT: _by_order_of_query("INSERT IGNORE... SELECT", "ignored"),
        Reason.INSERT_SELECT_UPDATE: _by_order_of_query(
            "INSERT... SELECT... ON DUPLICATE KEY UPDATE", "updated"
        ),
        Reason.WRITE_AUTOINC_SELECT: (
            "Statements writing to a table with an auto-increment column after selecting from "
            "another table are unsafe because the order in which rows are retrieved determines "
            "what (if any) rows will be written. This order cannot be predicted and may differ "
            "on {pair}"
        ),
        Reason.REPLACE_SELECT: _by_order_of_query("REPLACE... SELECT", "replaced"),
        Reason.CREATE_IGNORE_SELECT: _by_order_of_query("CREATE... IGNORE SELECT", "ignored"),
        Reason.CREATE_REPLACE_SELECT: _by_order_of_query("CREATE... REPLACE SELECT", "replaced"),
        Reason.CREATE_SELECT_AUTOINC: _by_order_of_query(
            "CREATE TABLE... SELECT...  on a table with an auto-increment column", "inserted"
        ),
        Reason.UPDATE_IGNORE: _by_order(
            "UPDATE IGNORE", "updated determines which (if any) rows are ignored"
        ),
        Reason.INSERT_TWO_KEYS: (
            "INSERT... ON DUPLICATE KEY UPDATE  on a table with more than one UNIQUE KEY is unsafe"
        ),
        Reason.AUTOINC_NOT_FIRST: (
            "INSERT into autoincrement field which is not the first part in the composed primary "
            "key is unsafe"
        ),
        Reason.AUTOINC_LOCK_MODE: _SYSTEM_VARIABLE,
        Reason.FULLTEXT_PLUGIN: (
            "Statement is unsafe because it uses a fulltext parser plugin which may not return "
            "the same value on the {on}"
        ),
        Reason.SKIP_LOCKED: (
            "Statement is unsafe because it uses SKIP LOCKED. The set of inserted values is "
            "non-deterministic"
        ),
        Reason.NOWAIT: (
            "Statement is unsafe because it uses NOWAIT. Whether the command will succeed or fail "
            "is not deterministic"
        ),
        Reason.XA: (
            "Statement is unsafe because it is being used inside a XA transaction. Concurrent XA "
            "transactions may deadlock on {on}s when replicated using statements"
        ),
        Reason.DEFAULT_EXPRESSION_IN_SUBSTATEMENT: (
            "The statement is unsafe because it invokes a trigger or a stored function that "
            "modifies a table that has a column with a DEFAULT expression that may return a "
            "different value on the {on}"
        ),
        Reason.ACL_TABLE_READ_IN_DML_DDL: (
            "The statement is unsafe because it updates a table depending on ACL table read "
            "operation. As storage engine row locks are skipped for ACL table, it may not have "
            "same effect on source and replica"
        ),
        Reason.CREATE_SELECT_WITH_GIPK: (
            "Generating an invisible primary key for a table created using CREATE TABLE ... "
            "SELECT ... is disallowed when binlog_format=STATEMENT. It cannot be guaranteed that "
            "the SELECT retrieves rows in the same order on source and replica. Therefore, it "
            "cannot be guaranteed that the value generated for the generated implicit primary key "
            "column will be the same on source and replica for all rows. Use binlog_format=ROW or "
            "MIXED to execute this statement"
        ),
    }
)
_MARIADB_TEXTS: Final[Mapping[Reason, str]] = MappingProxyType(
    {Reason.SKIP_LOCKED: "SKIP LOCKED makes this statement unsafe"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Via:
    """One step from the statement's text to a table: a view, trigger, routine or foreign key.

    Attributes:
        kind: `view`, `trigger`, `function`, `procedure`, `foreign key`, `default of`,
            `merge table`.
        name: Its name; of a foreign key the child table's, of a default the table's.
    """

    kind: str
    name: TableName


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasonFound:
    """An unsafe reason with what raised it.

    Attributes:
        what: The unsafe part of the statement, such as `uuid()` or `@@hostname`.
        offset: Position in the statement's text of the part, or of the name that leads to it.
        length: Length of the text at `offset`, in characters.
        via: Steps from the statement to the part; empty if the statement's own text has it.
    """

    reason: Reason
    what: str = ""
    offset: int = 0
    length: int = 0
    via: tuple[Via, ...] = ()

    def moved(self, shift: Shift) -> ReasonFound:
        """Return the same reason in a statement that differs only in its literals."""
        offset = shift(self.offset)
        return replace(self, offset=offset, length=shift(self.offset + self.length) - offset)


_UNSAFE_IN_BOTH: Final = frozenset(
    {
        *("FOUND_ROWS", "ROW_COUNT", "SLEEP", "SYSDATE", "LOAD_FILE", "RANDOM_BYTES"),
        *("GET_LOCK", "IS_FREE_LOCK", "IS_USED_LOCK", "RELEASE_LOCK", "RELEASE_ALL_LOCKS"),
        *("USER", "SESSION_USER", "SYSTEM_USER", "CURRENT_USER"),
        *("UUID", "UUID_SHORT", "VERSION", "MASTER_POS_WAIT"),
    }
)
MARIADB_UNSAFE_FUNCTIONS: Final = _UNSAFE_IN_BOTH | {
    *("MASTER_GTID_WAIT", "BINLOG_GTID_POS", "CURRENT_ROLE"),
    *("SYS_GUID", "UUID_V4", "UUID_V7", "JSON_TABLE"),
    *("NEXTVAL", "LASTVAL"),
}
MYSQL_UNSAFE_FUNCTIONS: Final = _UNSAFE_IN_BOTH | {
    *("AES_ENCRYPT", "AES_DECRYPT", "ICU_VERSION", "RAND"),
    *("SOURCE_POS_WAIT", "WAIT_FOR_EXECUTED_GTID_SET"),
}
_SAFE_VARIABLES: Final = frozenset(
    {
        *("auto_increment_increment", "auto_increment_offset"),
        *("character_set_client", "character_set_connection"),
        *("character_set_database", "character_set_server"),
        *("collation_connection", "collation_database", "collation_server"),
        *("foreign_key_checks", "identity", "last_insert_id", "lc_time_names"),
        *("pseudo_thread_id", "rand_seed1", "rand_seed2", "sql_auto_is_null"),
        *("time_zone", "timestamp", "unique_checks"),
    }
)
MARIADB_SAFE_VARIABLES: Final = _SAFE_VARIABLES | {
    *("check_constraint_checks", "explicit_defaults_for_timestamp", "sql_if_exists"),
    "system_versioning_insert_history",
}
MYSQL_SAFE_VARIABLES: Final = _SAFE_VARIABLES | {
    *("default_collation_for_utf8mb4", "default_table_encryption"),
    *("generated_random_password_length", "immediate_server_version"),
    *("original_commit_timestamp", "original_server_version"),
    *("partial_revokes", "xa_detach_on_prepare"),
}


def is_unsafe_function(use: FunctionUse, kind: StatementKind, server: Server) -> bool:
    """True if a built-in function makes a statement unsafe.

    Args:
        use: The call of the function in the text.
        kind: Kind of the statement whose text has the call. MariaDB takes RAND for safe in INSERT, whose
            seeds are logged, and ROWNUM for unsafe only where rows are changed in place.
        server: Server whose functions are meant.
    """
    if use.database is not None:
        return False
    name = use.upper_name
    if not server.is_mariadb:
        return name in MYSQL_UNSAFE_FUNCTIONS or (
            name == "PASSWORD" and server.has(Fact.PASSWORD_IS_UNSAFE)
        )
    if name == "RAND":
        return kind is not StatementKind.INSERT
    if name == "ROWNUM":
        return kind in (StatementKind.UPDATE, StatementKind.DELETE)
    return name in MARIADB_UNSAFE_FUNCTIONS


def is_unsafe_variable(use: SystemVariableUse, server: Server) -> bool:
    """True if reading a system variable makes a statement unsafe: most do, all global ones."""
    if use.scope in (VariableScope.GLOBAL, VariableScope.PERSIST):
        return True
    safe = MARIADB_SAFE_VARIABLES if server.is_mariadb else MYSQL_SAFE_VARIABLES
    return use.name not in safe


_INSERTS: Final = (StatementKind.INSERT, StatementKind.REPLACE)


# LIMIT of these commands counts whatever its number, as it stands in another rule of the grammar.


@dataclass(frozen=True, slots=True)
class TextPlace:
    """Position of a used text: the steps that lead to it, and their start in the statement's own text.

    Attributes:
        via: Steps to the text; empty for the statement's own text.
        offset: Position of the name that leads to the text; without meaning for the statement's own text.
        length: Length of the text at `offset`, in characters.
    """

    via: tuple[Via, ...] = ()
    offset: int = 0
    length: int = 0

    def then(self, via: Via, offset: int, length: int) -> TextPlace:
        """Return the place one step further; the first step rules the place in the statement."""
        if self.via:
            return TextPlace((*self.via, via), self.offset, self.length)
        return TextPlace((via,), offset, length)

    def found(self, reason: Reason, what: str, offset: int, length: int) -> ReasonFound:
        """Return a reason found at `offset` of the text at this place."""
        if self.via:
            offset, length = self.offset, self.length
        return ReasonFound(reason=reason, what=what, offset=offset, length=length, via=self.via)


OWN_TEXT: Final = TextPlace()


def parsed_reasons(
    facts: StatementFacts, objects: Objects, server: Server, place: TextPlace = OWN_TEXT
) -> Iterator[ReasonFound]:
    """Give the reasons that a text raises in every use, in no order."""
    yield from _limits(facts, server, place)
    for use in facts.functions:
        reason = _function(facts, use, objects, server)
        if reason is not None:
            yield place.found(reason, f"{use.name.lower()}()", use.offset, use.length)
    for variable in facts.system_variables:
        if is_unsafe_variable(variable, server):
            scope = variable.scope.value
            name = f"@@{scope}.{variable.name}" if scope else f"@@{variable.name}"
            yield place.found(Reason.SYSTEM_VARIABLE, name, variable.offset, variable.length)
    if facts.skip_locked is not None and server.has(Fact.SKIP_LOCKED):
        yield place.found(Reason.SKIP_LOCKED, "SKIP LOCKED", facts.skip_locked, len("SKIP LOCKED"))
    if facts.nowait is not None and not server.is_mariadb:
        yield place.found(Reason.NOWAIT, "NOWAIT", facts.nowait, len("NOWAIT"))


def command_reasons(facts: StatementFacts) -> Iterator[ReasonFound]:
    """Give the reasons that a command raises when executed directly, not inside a routine."""
    kind = facts.effects.kind
    offset = facts.query_offset or 0
    if kind is StatementKind.REPLACE and facts.has_query:
        yield _command(Reason.REPLACE_SELECT, "REPLACE … SELECT", offset)
    elif kind is StatementKind.INSERT and facts.has_query:
        if facts.is_ignore:
            yield _command(Reason.INSERT_IGNORE_SELECT, "INSERT IGNORE … SELECT", offset)
        if facts.is_on_duplicate:
            what = "INSERT … SELECT … ON DUPLICATE KEY UPDATE"
            yield _command(Reason.INSERT_SELECT_UPDATE, what, offset)
    elif kind is StatementKind.CREATE_TABLE_SELECT:
        if facts.is_ignore:
            yield _command(Reason.CREATE_IGNORE_SELECT, "CREATE … IGNORE SELECT", offset)
        if facts.is_replace:
            yield _command(Reason.CREATE_REPLACE_SELECT, "CREATE … REPLACE SELECT", offset)
    elif kind is StatementKind.UPDATE and facts.is_ignore and not facts.is_multi_table:
        yield _command(Reason.UPDATE_IGNORE, "UPDATE IGNORE", 0)


def _command(reason: Reason, what: str, offset: int) -> ReasonFound:
    return ReasonFound(reason=reason, what=what, offset=offset, length=len("SELECT"))


def _limits(facts: StatementFacts, server: Server, place: TextPlace) -> Iterator[ReasonFound]:
    tree = facts.tree
    own = tree.limit if isinstance(tree, Update | Delete) else None
    own_at = None if own is None else facts.place(own.at)
    for limit in facts.limits:
        if not limit.is_zero or not server.is_mariadb or limit.offset == own_at:
            yield place.found(Reason.LIMIT, "LIMIT", limit.offset, limit.length)


def _function(
    facts: StatementFacts, use: FunctionUse, objects: Objects, server: Server
) -> Reason | None:
    kind = facts.effects.kind
    if use.upper_name == "RAND" and kind is StatementKind.INSERT and _is_behind_query(facts, use):
        return Reason.SYSTEM_FUNCTION
    if is_unsafe_function(use, kind, server):
        return Reason.SYSTEM_FUNCTION
    if use.database is None and objects.is_loadable_function(use.name):
        return Reason.UDF
    return None


def _is_behind_query(facts: StatementFacts, use: FunctionUse) -> bool:
    """True if a call stands in ON DUPLICATE KEY UPDATE of INSERT … SELECT.

    From there on MariaDB takes INSERT for INSERT … SELECT.
    """
    start = facts.on_duplicate_offset
    return facts.has_query and start is not None and use.offset > start


def columns_by_default(facts: StatementFacts, table: Table) -> set[str]:
    """The columns, in small letters, for which DEFAULT stands in a text."""
    if not facts.defaults:
        return set()
    found = {
        node.column.parts[-1].lower()
        for node in walk(facts.tree)
        if isinstance(node, Default) and node.column is not None
    }
    if isinstance(facts.tree, Update):
        for one in facts.tree.assignments:
            if isinstance(one.value, Default):
                found.add(one.column.parts[-1].lower())
    elif isinstance(facts.tree, Insert):
        names = facts.columns or [column.name for column in table.definition.columns]
        for row in told(facts.tree.rows or ()):
            items = told(row.items)
            is_whole = len(items) == len(row.items)
            for index, item in enumerate(items):
                if isinstance(item, Default):
                    meant = names[index : index + 1] if is_whole else names
                    found.update(name.lower() for name in meant)
    return found
