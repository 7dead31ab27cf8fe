"""Results of statements, and the texts of the errors with which the servers refuse them.

Source: the message files of MariaDB 10.11 and MySQL 9.7.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from types import MappingProxyType
from typing import Final, NamedTuple

from binlane.names import TableName
from binlane.statements.policy import reasons
from binlane.statements.policy.reasons import Reason, ReasonFound
from binlane.statements.policy.server import Server
from binlane.statements.sql.facts import Shift
from binlane.statements.sql.schema import Routine


@dataclass(frozen=True, slots=True, kw_only=True)
class Why:
    """A named part of a statement that leads to a refusal or note.

    Attributes:
        what: The object or expression meant: `shop.bar`, `uuid()`.
        through: Views, triggers and routines that lead to the part, outermost first, as `view d.v`.
        offset: Position in the statement's text, in characters from 0.
        length: Number of characters to underline.
        hint: Advice that would make the part safe.
    """

    what: str = ""
    through: tuple[str, ...] = ()
    offset: int = 0
    length: int = 0
    hint: str = ""

    def moved(self, shift: Shift) -> Why:
        """Return the same cause for a statement that differs only in its literals."""
        offset = shift(self.offset)
        return replace(self, offset=offset, length=shift(self.offset + self.length) - offset)


@dataclass(frozen=True, slots=True)
class Refusal:
    """An error that keeps a statement from running, or that a program raises.

    Attributes:
        errno: Error number as the client gets it.
        symbol: The error's symbol, as `ER_BINLOG_…`; `BINLANE_PARTIAL_WRITE`, `BINLANE_DEPENDENCY`,
            `BINLANE_PARTIAL_TRANSACTION`, … for the refusals of seed 000.
        message: The whole text, its arguments filled in.
        binlogs: Names of the binlogs that refuse it.
        is_stated: The script stated this error with `-- @error`; nothing refuses the statement.
        why: Parts of the statement that lead to the refusal.
        others: More reasons against the statement, of this and other binlogs; a server names the
            first alone.
        is_own: A program raises the error by itself, on data that it finds wrong.
        on_some_ways: Data decides whether execution comes to the error.
        behind: Errors that the server lists behind this one in SHOW WARNINGS.
    """

    errno: int
    sqlstate: str
    symbol: str
    message: str
    _: KW_ONLY
    binlogs: tuple[str, ...] = ()
    is_stated: bool = False
    why: tuple[Why, ...] = ()
    others: tuple[Refusal, ...] = ()
    is_own: bool = False
    on_some_ways: bool = False
    behind: tuple[Refusal, ...] = ()

    @property
    def is_for_safety(self) -> bool:
        """True if binlane refuses what a server would do: no program goes on behind that."""
        return self.symbol.startswith("BINLANE_")

    def moved(self, shift: Shift) -> Refusal:
        """Return the same refusal for a statement that differs only in its literals."""
        return replace(self, why=tuple(why.moved(shift) for why in self.why)) if self.why else self


class Outcome(NamedTuple):
    """Result of a statement that ran, as far as its text does not tell.

    Attributes:
        error: The server's error number after the decision; None if it succeeded.
        rows: Rows changed; None if not said (then: some, unless `error`).
        is_proven_empty: The optimiser proved that nothing matches; logged in no format.
    """

    error: int | None = None
    rows: int | None = None
    is_proven_empty: bool = False


NO_OUTCOME: Final = Outcome()
"""Nothing is said."""

_GENERAL: Final = "HY000"
_IMPOSSIBLE: Final = "Cannot execute statement: impossible to write to binary log since "
_LOGGING_IMPOSSIBLE_MARIADB: Final = Refusal(
    *(1030, _GENERAL, "ER_GET_ERRNO"),
    'Got error 170 "It is not possible to log this statement" from storage engine InnoDB',
)
_LOGGING_IMPOSSIBLE_MYSQL: Final = Refusal(
    *(1015, _GENERAL, "ER_CANT_LOCK"),
    "Can't lock file (errno: 170 - It is not possible to log this statement)",
)
_LIMITED_INNODB: Final = (
    " InnoDB is limited to row-logging when transaction isolation level is READ COMMITTED or "
    "READ UNCOMMITTED."
)


def row_and_statement_engines(server: Server) -> Refusal:
    """Error 1661: no format is left in which all written tables can be logged."""
    why = "both row-incapable engines and statement-incapable engines are involved"
    return _impossible(1661, "ROW_ENGINE_AND_STMT_ENGINE", why, server)


def row_mode_and_statement_engine(server: Server) -> Refusal:
    """Error 1662: mode ROW, and a table that can be logged as statement only."""
    why = (
        "BINLOG_FORMAT = ROW and at least one table uses a storage engine limited to "
        "statement-based logging"
    )
    return _impossible(1662, "ROW_MODE_AND_STMT_ENGINE", why, server)


def unsafe_and_statement_engine(found: ReasonFound, server: Server) -> Refusal:
    """Error 1663: unsafe, and a table that can be logged as statement only."""
    message = (
        f"{_IMPOSSIBLE}statement is unsafe, storage engine is limited to statement-based "
        f"logging, and BINLOG_FORMAT = MIXED. {reasons.text(found.reason, server)}"
    )
    why = Why(what=found.what, offset=found.offset, length=found.length)
    return Refusal(1663, _GENERAL, "ER_BINLOG_UNSAFE_AND_STMT_ENGINE", message, why=(why,))


def unsafe_default_is_added(found: ReasonFound, server: Server) -> Refusal:
    """Error 1674: MySQL's ALTER TABLE adds a column whose DEFAULT may give other values on a replica."""
    why = Why(what=found.what, offset=found.offset, length=found.length)
    text = reasons.text(found.reason, server)
    return Refusal(1674, _GENERAL, reasons.symbol(found.reason), text, why=(why,))


def row_injection_and_statement_engine(server: Server) -> Refusal:
    """Error 1664: row events for a table that can be logged as statement only."""
    why = (
        "statement is in row format and at least one table uses a storage engine limited to "
        "statement-based logging"
    )
    return _impossible(1664, "ROW_INJECTION_AND_STMT_ENGINE", why, server)


def statement_mode_and_row_engine() -> Refusal:
    """Error 1665: mode STATEMENT, and a table that can be logged as row only."""
    message = (
        f"{_IMPOSSIBLE}BINLOG_FORMAT = STATEMENT and at least one table uses a storage engine "
        "limited to row-based logging."
    )
    return Refusal(1665, _GENERAL, "ER_BINLOG_STMT_MODE_AND_ROW_ENGINE", message)


def innodb_in_statement_mode(server: Server) -> Refusal:
    """Error 1665 as InnoDB itself raises it, with its cause; the server then tells that its lock failed."""
    raised = statement_mode_and_row_engine()
    failed = _LOGGING_IMPOSSIBLE_MARIADB if server.is_mariadb else _LOGGING_IMPOSSIBLE_MYSQL
    return replace(raised, message=raised.message + _LIMITED_INNODB, behind=(failed,))


def row_injection_and_statement_mode(server: Server) -> Refusal:
    """Error 1666: row events under mode STATEMENT."""
    why = "statement is in row format and BINLOG_FORMAT = STATEMENT"
    return _impossible(1666, "ROW_INJECTION_AND_STMT_MODE", why, server)


def several_engines_and_self_logging(server: Server) -> Refusal:
    """Error 1667: several engines are written, one of which logs by itself."""
    why = "more than one engine is involved and at least one engine is self-logging"
    return _impossible(1667, "MULTIPLE_ENGINES_AND_SELF_LOGGING_ENGINE", why, server)


def replicated_and_other_tables(server: Server) -> Refusal:
    """Error 1844: as statement, and only some of the written tables are replicated."""
    why = "BINLOG_FORMAT = STATEMENT, and both replicated and non replicated tables are written to"
    return _impossible(1844, "STMT_MODE_AND_NO_REPL_TABLES", why, server)


def _impossible(errno: int, symbol: str, why: str, server: Server) -> Refusal:
    message = f"{_IMPOSSIBLE}{why}{'' if server.is_mariadb else '.'}"
    return Refusal(errno, _GENERAL, f"ER_BINLOG_{symbol}", message)


def delay_not_supported(name: TableName) -> Refusal:
    """Error 1616: INSERT DELAYED into an engine that does not support it."""
    message = f"DELAYED option not supported for table '{name.table}'"
    return Refusal(1616, _GENERAL, "ER_DELAYED_NOT_SUPPORTED", message)


BULK_IN_STATEMENT_MODE: Final = Refusal(
    *(4033, _GENERAL, "ER_BINLOG_NON_SUPPORTED_BULK"),
    "Only row based replication supported for bulk operations",
)
"""MariaDB's array binding under mode STATEMENT."""
NONTRANSACTIONAL_AND_GTID: Final = Refusal(
    *(1785, _GENERAL, "ER_GTID_UNSAFE_NON_TRANSACTIONAL_TABLE"),
    "Statement violates GTID consistency: Updates to non-transactional tables can only be "
    "done in either autocommitted statements or single-statement transactions, and never "
    "in the same statement as updates to transactional tables.",
)
"""MySQL's GTID consistency allows no mixture of engines."""
CREATE_SELECT_AND_GTID: Final = Refusal(
    *(1786, _GENERAL, "ER_GTID_UNSAFE_CREATE_SELECT"),
    "Statement violates GTID consistency: CREATE TABLE ... SELECT.",
)
"""MySQL's GTID consistency allows no CREATE … SELECT of an engine without atomic DDL."""


def invisible_key_and_statement_mode(server: Server) -> Refusal:
    """Error 4112: MySQL's CREATE … SELECT under mode STATEMENT, of a table that gets its key by itself."""
    reason = Reason.CREATE_SELECT_WITH_GIPK
    return Refusal(4112, _GENERAL, reasons.symbol(reason), reasons.text(reason, server))


TEMPORARY_TABLE_AND_GTID: Final = Refusal(
    *(3748, _GENERAL, "ER_CLIENT_GTID_UNSAFE_CREATE_DROP_TEMP_TABLE_IN_TRX_IN_SBR"),
    "Statement violates GTID consistency: CREATE TEMPORARY TABLE and DROP TEMPORARY TABLE "
    "are not allowed inside a transaction or inside a procedure in a transactional "
    "context when @@session.binlog_format=STATEMENT.",
)
"""MySQL's GTID consistency, and a temporary table in a transaction as statement."""


def no_such_table(name: TableName) -> Refusal:
    """Error 1146: no such table or view."""
    return Refusal(1146, "42S02", "ER_NO_SUCH_TABLE", f"Table '{name.plain}' doesn't exist")


TEMPORARY_IN_XA: Final = Refusal(
    4091,
    "HY000",
    "ER_XA_TEMP_TABLE",
    "XA: Temporary tables cannot be accessed inside XA transactions when xa_detach_on_prepare=ON",
)


def no_such_sequence(name: TableName) -> Refusal:
    """Error 4091: no such sequence, where a statement of MariaDB opens nothing but sequences."""
    return Refusal(4091, "42S02", "ER_UNKNOWN_SEQUENCES", f"Unknown SEQUENCE: '{name.table}'")


def no_such_database(database: str) -> Refusal:
    """Error 1049: no such database."""
    return Refusal(1049, "42000", "ER_BAD_DB_ERROR", f"Unknown database '{database}'")


def no_such_routine(kind: str, name: TableName) -> Refusal:
    """Error 1305: no such PROCEDURE or FUNCTION."""
    shown = name.plain if name.database else name.table
    return Refusal(1305, "42000", "ER_SP_DOES_NOT_EXIST", f"{kind} {shown} does not exist")


NO_DATABASE: Final = Refusal(1046, "3D000", "ER_NO_DB_ERROR", "No database selected")
"""A name needs the default database, and there is none."""


def written_while_created(written: TableName, created: TableName) -> Refusal:
    """Error 1746: MySQL's CREATE … SELECT calls a function that writes a table."""
    message = f"Can't update table '{written.table}' while '{created.table}' is being created."
    return Refusal(1746, _GENERAL, "ER_CANT_UPDATE_TABLE_IN_CREATE_TABLE_SELECT", message)


def view_recursion(name: TableName) -> Refusal:
    """Error 1462: a view refers to itself."""
    return Refusal(1462, _GENERAL, "ER_VIEW_RECURSIVE", f"{name} contains view recursion")


def invalid_view(name: TableName) -> Refusal:
    """Return error 1356: a view refers to an object that does not exist."""
    message = (
        f"View '{name.plain}' references invalid table(s) or column(s) or function(s) or "
        "definer/invoker of view lack rights to use them"
    )
    return Refusal(1356, _GENERAL, "ER_VIEW_INVALID", message)


# Errors of the text and the objects ---------------------------------------------------------------


def refusal(errno: int, *arguments: object, server: Server | None = None) -> Refusal:
    """The error of a number in `_TEXTS`.

    Args:
        errno: Error number, a key of `_TEXTS`.
        arguments: Values for the holes of the text, in order.
        server: Server whose text is given, where texts differ.
    """
    sqlstate, symbol, text, *others = _TEXTS[errno]
    if others and server is not None and server.is_mariadb:
        text = others[0]
    return Refusal(errno, sqlstate, symbol, text.format(*arguments))


def table_is_there(name: TableName) -> Refusal:
    """1050: MariaDB's InnoDB has a foreign key of a name that a table's key would have."""
    message = f"Table './{name.database}/{name.table}' already exists"
    return Refusal(1050, "42S01", "ER_TABLE_EXISTS_ERROR", message)


def wrong_argument_count(routine: Routine, given: int) -> Refusal:
    """Error 1318: a routine gets too few or too many arguments."""
    kind = "FUNCTION" if routine.is_function else "PROCEDURE"
    return refusal(1318, kind, routine.name.plain, len(routine.parameters), given)


_TEXTS: Final[Mapping[int, tuple[str, ...]]] = MappingProxyType(
    {
        1005: (
            *("HY000", "ER_CANT_CREATE_TABLE"),
            (
                "Can't create table `{}`.`{}` "
                '(errno: 150 "Foreign key constraint is incorrectly formed")'
            ),
        ),
        1048: ("23000", "ER_BAD_NULL_ERROR", "Column '{}' cannot be null"),
        1051: ("42S02", "ER_BAD_TABLE_ERROR", "Unknown table '{}'"),
        1054: ("42S22", "ER_BAD_FIELD_ERROR", "Unknown column '{}' in '{}'"),
        1060: ("42S21", "ER_DUP_FIELDNAME", "Duplicate column name '{}'"),
        1061: ("42000", "ER_DUP_KEYNAME", "Duplicate key name '{}'"),
        1068: ("42000", "ER_MULTIPLE_PRI_KEY", "Multiple primary key defined"),
        1072: ("42000", "ER_KEY_COLUMN_DOES_NOT_EXITS", "Key column '{}' doesn't exist in table"),
        1075: (
            *("42000", "ER_WRONG_AUTO_KEY"),
            (
                "Incorrect table definition; there can be only one auto column and it must be "
                "defined as a key"
            ),
        ),
        1090: (
            *("42000", "ER_CANT_REMOVE_ALL_FIELDS"),
            "You can't delete all columns with ALTER TABLE; use DROP TABLE instead",
        ),
        1091: (
            *("42000", "ER_CANT_DROP_FIELD_OR_KEY"),
            "Can't DROP '{1}'; check that column/key exists",
            "Can't DROP {0} `{1}`; check that it exists",
        ),
        1099: (
            *("HY000", "ER_TABLE_NOT_LOCKED_FOR_WRITE"),
            "Table '{}' was locked with a READ lock and can't be updated",
        ),
        1100: ("HY000", "ER_TABLE_NOT_LOCKED", "Table '{}' was not locked with LOCK TABLES"),
        1823: (
            *("HY000", "ER_FK_FAIL_ADD_SYSTEM"),
            "Failed to add the foreign key constraint '{}' to system tables",
        ),
        1826: ("HY000", "ER_FK_DUP_NAME", "Duplicate foreign key constraint name '{}'"),
        1066: ("42000", "ER_NONUNIQ_TABLE", "Not unique table/alias: '{}'"),
        1109: ("42S02", "ER_UNKNOWN_TABLE", "Unknown table '{}' in MULTI DELETE"),
        1110: ("42000", "ER_FIELD_SPECIFIED_TWICE", "Column '{}' specified twice"),
        1136: (
            *("21S01", "ER_WRONG_VALUE_COUNT_ON_ROW"),
            "Column count doesn't match value count at row {}",
        ),
        1176: ("42000", "ER_KEY_DOES_NOT_EXITS", "Key '{}' doesn't exist in table '{}'"),
        1223: (
            *("HY000", "ER_CANT_UPDATE_WITH_READLOCK"),
            "Can't execute the query because you have a conflicting read lock",
        ),
        1192: (
            *("HY000", "ER_LOCK_OR_ACTIVE_TRANSACTION"),
            (
                "Can't execute the given command because you have active locked tables or an "
                "active transaction"
            ),
        ),
        1193: ("HY000", "ER_UNKNOWN_SYSTEM_VARIABLE", "Unknown system variable '{}'"),
        1215: ("HY000", "ER_CANNOT_ADD_FOREIGN", "Cannot add foreign key constraint"),
        1239: (
            *("42000", "ER_WRONG_FK_DEF"),
            (
                "Incorrect foreign key definition for '{}': Key reference and table reference don't "
                "match"
            ),
        ),
        1280: ("42000", "ER_WRONG_NAME_FOR_INDEX", "Incorrect index name '{}'"),
        1308: ("42000", "ER_SP_LILABEL_MISMATCH", "{} with no matching label: {}"),
        1309: ("42000", "ER_SP_LABEL_REDEFINE", "Redefining label {}"),
        1313: ("42000", "ER_SP_BADRETURN", "RETURN is only allowed in a FUNCTION"),
        1314: ("0A000", "ER_SP_BADSTATEMENT", "{} is not allowed in stored procedures"),
        1318: (
            *("42000", "ER_SP_WRONG_NO_OF_ARGS"),
            "Incorrect number of arguments for {} {}; expected {}, got {}",
        ),
        1319: ("42000", "ER_SP_COND_MISMATCH", "Undefined CONDITION: {}"),
        1320: ("42000", "ER_SP_NORETURN", "No RETURN found in FUNCTION {}"),
        1324: ("42000", "ER_SP_CURSOR_MISMATCH", "Undefined CURSOR: {}"),
        1327: ("42000", "ER_SP_UNDECLARED_VAR", "Undeclared variable: {}"),
        1330: ("42000", "ER_SP_DUP_PARAM", "Duplicate parameter: {}"),
        1331: ("42000", "ER_SP_DUP_VAR", "Duplicate variable: {}"),
        1332: ("42000", "ER_SP_DUP_COND", "Duplicate condition: {}"),
        1333: ("42000", "ER_SP_DUP_CURS", "Duplicate cursor: {}"),
        1353: (
            *("HY000", "ER_VIEW_WRONG_LIST"),
            (
                "In definition of view, derived table or common table expression, SELECT list and "
                "column names list have different column counts"
            ),
            "View's SELECT and view's field list have different column counts",
        ),
        1362: (
            *("HY000", "ER_TRG_CANT_CHANGE_ROW"),
            "Updating of {} row is not allowed in {}trigger",
        ),
        1363: ("HY000", "ER_TRG_NO_SUCH_ROW_IN_TRG", "There is no {} row in on {} trigger"),
        1364: ("HY000", "ER_NO_DEFAULT_FOR_FIELD", "Field '{}' doesn't have a default value"),
        1415: ("0A000", "ER_SP_NO_RETSET", "Not allowed to return a result set from a {}"),
        1422: (
            *("HY000", "ER_COMMIT_NOT_ALLOWED_IN_SF_OR_TRG"),
            "Explicit or implicit commit is not allowed in stored function or trigger.",
            "Explicit or implicit commit is not allowed in stored function or trigger",
        ),
        1304: ("42000", "ER_SP_ALREADY_EXISTS", "{} {} already exists"),
        3977: (
            *("HY000", "ER_STATEMENT_NOT_ALLOWED_AFTER_START_TRANSACTION"),
            (
                "Only BINLOG INSERT, COMMIT and ROLLBACK statements are allowed after CREATE TABLE "
                "with START TRANSACTION statement."
            ),
        ),
        3978: (
            *("HY000", "ER_FOREIGN_KEY_WITH_ATOMIC_CREATE_SELECT"),
            (
                "Foreign key creation is not allowed with CREATE TABLE as SELECT and CREATE TABLE "
                "with START TRANSACTION statement."
            ),
        ),
        3979: (
            *("HY000", "ER_NOT_ALLOWED_WITH_START_TRANSACTION"),
            "START TRANSACTION clause cannot be used {}.",
        ),
        1766: (
            *("HY000", "ER_VARIABLE_NOT_SETTABLE_IN_TRANSACTION"),
            "The system variable {} cannot be set when there is an ongoing transaction.",
        ),
        1792: (
            *("25006", "ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION"),
            "Cannot execute statement in a READ ONLY transaction.",
            "Cannot execute statement in a READ ONLY transaction",
        ),
        1822: (
            *("HY000", "ER_FK_NO_INDEX_PARENT"),
            (
                "Failed to add the foreign key constraint. Missing index for constraint '{}' in the "
                "referenced table '{}'"
            ),
        ),
        1824: ("HY000", "ER_FK_CANNOT_OPEN_PARENT", "Failed to open the referenced table '{}'"),
        1830: (
            *("HY000", "ER_FK_COLUMN_NOT_NULL"),
            "Column '{}' cannot be NOT NULL: needed in a foreign key constraint '{}' SET NULL",
        ),
        1901: (
            *("HY000", "ER_GENERATED_COLUMN_FUNCTION_IS_NOT_ALLOWED"),
            "Function or expression '{}' cannot be used in the {} clause of `{}`",
        ),
        1970: (
            *("42000", "ER_SUBQUERIES_NOT_SUPPORTED"),
            "{} does not support subqueries or stored functions",
        ),
        3102: (
            *("HY000", "ER_GENERATED_COLUMN_FUNCTION_IS_NOT_ALLOWED"),
            "Expression of generated column '{}' contains a disallowed function.",
        ),
        3734: (
            *("HY000", "ER_FK_NO_COLUMN_PARENT"),
            (
                "Failed to add the foreign key constraint. Missing column '{}' for constraint '{}' in "
                "the referenced table '{}'"
            ),
        ),
        1619: ("HY000", "ER_PLUGIN_DELETE_BUILTIN", "Built-in plugins cannot be deleted"),
        3537: (
            *("HY000", "ER_COMPONENTS_UNLOAD_NOT_LOADED"),
            "Component specified by URN '{}' to unload has not been loaded before.",
        ),
        6512: (
            *("HY000", "ER_ENGINE_DOES_NOT_SUPPORT_EXTERNAL_TABLES"),
            "The '{}' storage engine does not support external tables",
        ),
        6513: ("HY000", "ER_EXTERNAL_ENGINE_MISSING", "External storage engine is not specified"),
        3106: (
            *("HY000", "ER_UNSUPPORTED_ACTION_ON_GENERATED_COLUMN"),
            "'{}' is not supported for generated columns.",
        ),
        3733: (
            *("HY000", "ER_FK_CANNOT_USE_VIRTUAL_COLUMN"),
            "Foreign key '{}' uses virtual column '{}' which is not supported.",
        ),
        3756: (
            *("HY000", "ER_FUNCTIONAL_INDEX_PRIMARY_KEY"),
            "The primary key cannot be a functional index",
        ),
        3758: (
            *("HY000", "ER_FUNCTIONAL_INDEX_FUNCTION_IS_NOT_ALLOWED"),
            "Expression of functional index '{}' contains a disallowed function.",
        ),
        3759: (
            *("HY000", "ER_FULLTEXT_FUNCTIONAL_INDEX"),
            "Fulltext functional index is not supported.",
        ),
        3762: (
            *("HY000", "ER_FUNCTIONAL_INDEX_ON_FIELD"),
            (
                "Functional index on a column is not supported. Consider using a regular index "
                "instead."
            ),
        ),
        3763: (
            *("HY000", "ER_GENERATED_COLUMN_NAMED_FUNCTION_IS_NOT_ALLOWED"),
            "Expression of generated column '{}' contains a disallowed function: {}.",
        ),
        3769: (
            *("HY000", "ER_DEFAULT_VAL_GENERATED_FUNCTION_IS_NOT_ALLOWED"),
            "Default value expression of column '{}' contains a disallowed function.",
        ),
        3770: (
            *("HY000", "ER_DEFAULT_VAL_GENERATED_NAMED_FUNCTION_IS_NOT_ALLOWED"),
            "Default value expression of column '{}' contains a disallowed function: {}.",
        ),
        3772: (
            *("HY000", "ER_DEFAULT_VAL_GENERATED_VARIABLES"),
            "Default value expression of column '{}' cannot refer user or system variables.",
        ),
        3780: (
            *("HY000", "ER_FK_INCOMPATIBLE_COLUMNS"),
            (
                "Referencing column '{}' and referenced column '{}' in foreign key constraint '{}' "
                "are incompatible."
            ),
        ),
        3814: (
            *("HY000", "ER_CHECK_CONSTRAINT_NAMED_FUNCTION_IS_NOT_ALLOWED"),
            "An expression of a check constraint '{}' contains disallowed function: {}.",
        ),
        3815: (
            *("HY000", "ER_CHECK_CONSTRAINT_FUNCTION_IS_NOT_ALLOWED"),
            "An expression of a check constraint '{}' contains disallowed function.",
        ),
        3816: (
            *("HY000", "ER_CHECK_CONSTRAINT_VARIABLES"),
            "An expression of a check constraint '{}' cannot refer to a user or system variable.",
        ),
        3108: (
            *("HY000", "ER_DEPENDENT_BY_GENERATED_COLUMN"),
            "Column '{}' has a generated column dependency.",
        ),
        3766: (
            *("HY000", "ER_DEPENDENT_BY_DEFAULT_GENERATED_VALUE"),
            (
                "Column '{}' of table '{}' has a default value expression dependency and cannot be "
                "dropped or renamed."
            ),
        ),
        3837: (
            *("HY000", "ER_DEPENDENT_BY_FUNCTIONAL_INDEX"),
            "Column '{}' has a functional index dependency and cannot be dropped or renamed.",
        ),
        3813: (
            *("HY000", "ER_COLUMN_CHECK_CONSTRAINT_REFERENCES_OTHER_COLUMN"),
            "Column check constraint '{}' references other column.",
        ),
        3820: (
            *("HY000", "ER_CHECK_CONSTRAINT_REFERS_UNKNOWN_COLUMN"),
            "Check constraint '{}' refers to non-existing column '{}'.",
        ),
        3821: (
            *("HY000", "ER_CHECK_CONSTRAINT_NOT_FOUND"),
            "Check constraint '{}' is not found in the table.",
        ),
        3822: ("HY000", "ER_CHECK_CONSTRAINT_DUP_NAME", "Duplicate check constraint name '{}'."),
        3940: ("HY000", "ER_CONSTRAINT_NOT_FOUND", "Constraint '{}' does not exist."),
        6125: (
            *("HY000", "ER_FK_NO_UNIQUE_INDEX_PARENT"),
            (
                "Failed to add the foreign key constraint. Missing unique key for constraint '{}' in "
                "the referenced table '{}'"
            ),
        ),
    }
)
"""By number: SQLSTATE, symbol, text, and MariaDB's where that is another."""
