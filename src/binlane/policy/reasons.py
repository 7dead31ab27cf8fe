"""The servers' reasons why a statement is unsafe to log as its text, and where they were found.

The members stand in the servers' bit order, which is the order of several notes or errors: what
only one server knows stands where its neighbours leave room, so that one order serves both.
Source: sql_lex.h, sql_lex.cc and the message files of MariaDB 10.11 and MySQL 9.7.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from binlane.sql.servers import Fact

if TYPE_CHECKING:
    from collections.abc import Mapping

    from binlane.names import TableName
    from binlane.policy.server import Server
    from binlane.sql.facts import Shift


class Reason(Enum):
    """Unsafe reasons; values are what follows `ER_BINLOG_UNSAFE_`."""

    LIMIT = "LIMIT"
    INSERT_DELAYED = "INSERT_DELAYED"
    SYSTEM_TABLE = "SYSTEM_TABLE"
    AUTOINC_COLUMNS = "AUTOINC_COLUMNS"
    UDF = "UDF"
    SYSTEM_VARIABLE = "SYSTEM_VARIABLE"
    SYSTEM_FUNCTION = "SYSTEM_FUNCTION"
    NONTRANS_AFTER_TRANS = "NONTRANS_AFTER_TRANS"
    MULTIPLE_ENGINES_AND_SELF_LOGGING_ENGINE = "MULTIPLE_ENGINES_AND_SELF_LOGGING_ENGINE"
    MIXED_STATEMENT = "MIXED_STATEMENT"
    INSERT_IGNORE_SELECT = "INSERT_IGNORE_SELECT"
    INSERT_SELECT_UPDATE = "INSERT_SELECT_UPDATE"
    WRITE_AUTOINC_SELECT = "WRITE_AUTOINC_SELECT"
    REPLACE_SELECT = "REPLACE_SELECT"
    CREATE_IGNORE_SELECT = "CREATE_IGNORE_SELECT"
    CREATE_REPLACE_SELECT = "CREATE_REPLACE_SELECT"
    CREATE_SELECT_AUTOINC = "CREATE_SELECT_AUTOINC"
    UPDATE_IGNORE = "UPDATE_IGNORE"
    INSERT_TWO_KEYS = "INSERT_TWO_KEYS"
    AUTOINC_NOT_FIRST = "AUTOINC_NOT_FIRST"
    AUTOINC_LOCK_MODE = "AUTOINC_LOCK_MODE"
    """MariaDB's only; it is told as SYSTEM_VARIABLE."""
    FULLTEXT_PLUGIN = "FULLTEXT_PLUGIN"
    SKIP_LOCKED = "SKIP_LOCKED"
    NOWAIT = "NOWAIT"
    XA = "XA"
    DEFAULT_EXPRESSION_IN_SUBSTATEMENT = "DEFAULT_EXPRESSION_IN_SUBSTATEMENT"
    ACL_TABLE_READ_IN_DML_DDL = "ACL_TABLE_READ_IN_DML_DDL"
    CREATE_SELECT_WITH_GIPK = "CREATE_SELECT_WITH_GIPK"

    @property
    def position(self) -> int:
        """Its place in the servers' bit order."""
        return _POSITIONS[self]


UNSAFE_STATEMENT: Final = (
    "Unsafe statement written to the binary log using statement format since "
    "BINLOG_FORMAT = STATEMENT. "
)

_POSITIONS: Final[Mapping[Reason, int]] = MappingProxyType(
    {reason: position for position, reason in enumerate(Reason)}
)


def symbol(reason: Reason) -> str:
    """The name that the servers' notes and messages give a reason."""
    told = Reason.SYSTEM_VARIABLE if reason is Reason.AUTOINC_LOCK_MODE else reason
    if told is Reason.CREATE_SELECT_WITH_GIPK:
        return "ER_CREATE_SELECT_WITH_GIPK_DISALLOWED_IN_SBR"
    return f"ER_BINLOG_UNSAFE_{told.value}"


def errno(reason: Reason, server: Server) -> int:
    """The number of a reason's text in the server's message file."""
    if reason is Reason.SKIP_LOCKED and not server.is_mariadb:
        return 3570
    return _ERRNOS[reason]


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


_ERRNOS: Final[Mapping[Reason, int]] = MappingProxyType(
    {
        Reason.LIMIT: 1668,
        Reason.INSERT_DELAYED: 1669,
        Reason.SYSTEM_TABLE: 1670,
        Reason.AUTOINC_COLUMNS: 1671,
        Reason.UDF: 1672,
        Reason.SYSTEM_VARIABLE: 1673,
        Reason.SYSTEM_FUNCTION: 1674,
        Reason.NONTRANS_AFTER_TRANS: 1675,
        Reason.MULTIPLE_ENGINES_AND_SELF_LOGGING_ENGINE: 1692,
        Reason.MIXED_STATEMENT: 1693,
        Reason.INSERT_IGNORE_SELECT: 1714,
        Reason.INSERT_SELECT_UPDATE: 1715,
        Reason.WRITE_AUTOINC_SELECT: 1722,
        Reason.REPLACE_SELECT: 1716,
        Reason.CREATE_IGNORE_SELECT: 1717,
        Reason.CREATE_REPLACE_SELECT: 1718,
        Reason.CREATE_SELECT_AUTOINC: 1723,
        Reason.UPDATE_IGNORE: 1719,
        Reason.INSERT_TWO_KEYS: 1724,
        Reason.AUTOINC_NOT_FIRST: 1727,
        Reason.AUTOINC_LOCK_MODE: 1673,
        Reason.FULLTEXT_PLUGIN: 3006,
        Reason.SKIP_LOCKED: 4175,
        Reason.NOWAIT: 3571,
        Reason.XA: 3199,
        Reason.DEFAULT_EXPRESSION_IN_SUBSTATEMENT: 13425,
        Reason.ACL_TABLE_READ_IN_DML_DDL: 4010,
        Reason.CREATE_SELECT_WITH_GIPK: 4112,
    }
)


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
