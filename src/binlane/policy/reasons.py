"""The servers' reasons why a statement is unsafe to log as its text, and where they were found.

The members stand in the servers' bit order, which is the order of several notes or errors: what
only one server knows stands where its neighbours leave room, so that one order serves both.
Source: sql_lex.h, sql_lex.cc and the message files of MariaDB 10.11 and MySQL 9.7.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum, auto
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from binlane.sql.servers import Fact

if TYPE_CHECKING:
    from collections.abc import Mapping

    from binlane.names import TableName
    from binlane.policy.server import Server
    from binlane.sql.facts import Shift


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
        """Its place in the servers' bit order."""
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
    """What a reason says, as it stands at the end of a note or error."""
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
        reason: Which.
        what: What in the statement is meant, such as `uuid()` or `@@hostname`.
        offset: Where it stands in the statement's text, or what leads to it.
        length: Of that.
        via: How the statement comes to it; empty if its own text says it.
    """

    reason: Reason
    what: str = ""
    offset: int = 0
    length: int = 0
    via: tuple[Via, ...] = ()

    def moved(self, shift: Shift) -> ReasonFound:
        """The same in a statement that differs only in its literals."""
        offset = shift(self.offset)
        return replace(self, offset=offset, length=shift(self.offset + self.length) - offset)
