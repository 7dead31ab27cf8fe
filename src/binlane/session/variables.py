"""The session's variables that bear on logging, and what SET does to them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final

from binlane.policy.procedure import Isolation
from binlane.policy.refusals import LoggingError
from binlane.policy.server import Server
from binlane.sql.facts import Assignment, VariableScope
from binlane.sql.logging_mode import LoggingMode

_ISOLATIONS: Final = {
    "READ-UNCOMMITTED": Isolation.READ_UNCOMMITTED,
    "READ-COMMITTED": Isolation.READ_COMMITTED,
    "REPEATABLE-READ": Isolation.REPEATABLE_READ,
    "SERIALIZABLE": Isolation.SERIALIZABLE,
}
_FORMATS: Final = {
    True: (LoggingMode.MIXED, LoggingMode.STATEMENT, LoggingMode.ROW, LoggingMode.MIXED),
    False: (LoggingMode.ROW, LoggingMode.MIXED, LoggingMode.STATEMENT, LoggingMode.ROW),
}
"""By whether the server is MariaDB: the default, then what 0, 1 and 2 mean."""

_ON: Final = frozenset(("1", "ON", "TRUE"))
_ISOLATION_NAMES: Final = frozenset(("tx_isolation", "transaction_isolation"))
_DIRECT: Final = "binlog_direct_non_transactional_updates"
_LOGGED: Final = frozenset(("binlog_format", _DIRECT, "sql_log_bin"))
_SHOWN_OPTIONS: Final = {
    "foreign_key_checks": False,
    "sql_auto_is_null": True,
    "unique_checks": False,
    "check_constraint_checks": False,
    "sql_if_exists": True,
}
"""By name: the value that is not the default."""
_GLOBAL_SCOPES: Final = frozenset((VariableScope.GLOBAL, VariableScope.PERSIST))


@dataclass(slots=True)
class Variables:
    """System variables of a session, and the global ones that rule it.

    Attributes:
        server: Whose defaults hold.
        values: Session values by name in lower case, as texts without quotes, in capitals.
        global_values: Global values that differ from the server's own defaults.
        is_format_set: The session said binlog_format itself.
    """

    server: Server
    values: dict[str, str] = field(default_factory=dict)
    global_values: dict[str, str] = field(default_factory=dict)
    is_format_set: bool = False

    @property
    def logging_mode(self) -> LoggingMode:
        """binlog_format of the session."""
        return self._mode(self.text("binlog_format"))

    @property
    def global_logging_mode(self) -> LoggingMode:
        """binlog_format of the server."""
        return self._mode(self.global_values.get("binlog_format", ""))

    @property
    def isolation(self) -> Isolation:
        """Isolation level of the session's transactions."""
        text = self.text("tx_isolation") or self.text("transaction_isolation")
        return _ISOLATIONS.get(text, Isolation.REPEATABLE_READ)

    @property
    def is_autocommit(self) -> bool:
        """Whether a statement outside BEGIN is a transaction by itself."""
        return self.is_on("autocommit", default=True)

    @property
    def is_logged(self) -> bool:
        """sql_log_bin."""
        return self.is_on("sql_log_bin", default=True)

    @property
    def is_direct(self) -> bool:
        """binlog_direct_non_transactional_updates."""
        return self.is_on(_DIRECT, default=False)

    @property
    def ansi_quotes(self) -> bool:
        """Whether double quotes hold names."""
        modes = self.text("sql_mode").split(",")
        return any(mode in ("ANSI", "ANSI_QUOTES") for mode in modes)

    @property
    def no_backslash_escapes(self) -> bool:
        """Whether a backslash in a string is one."""
        return "NO_BACKSLASH_ESCAPES" in self.text("sql_mode").split(",")

    @property
    def shown_options(self) -> str:
        """What MariaDB's SHOW BINLOG EVENTS shows before the text of a statement."""
        if self.values.keys().isdisjoint(_SHOWN_OPTIONS):
            return ""
        shown = [
            f"{'@@' if name == 'sql_if_exists' else ''}{name}={int(is_shown)}"
            for name, is_shown in _SHOWN_OPTIONS.items()
            if self.is_on(name, default=not is_shown) is is_shown
        ]
        return f"set {', '.join(shown)}; " if shown else ""

    def text(self, name: str) -> str:
        """A variable's value in capitals; empty if nothing is known of it."""
        return self.values.get(name, self.global_values.get(name, ""))

    def is_on(self, name: str, *, default: bool) -> bool:
        """Whether a switch is on."""
        text = self.text(name)
        return text in _ON if text else default

    def number(self, name: str, *, default: int) -> int:
        """A variable's number."""
        text = self.text(name)
        return int(text) if text.isdigit() else default

    def copy(self) -> Variables:
        """As they are now, to be restored after SET STATEMENT … FOR."""
        return replace(self, values=dict(self.values), global_values=dict(self.global_values))

    def assign(self, assignment: Assignment) -> None:
        """Carry out one assignment of SET that was found right."""
        name, value = assignment.name, plain(assignment.value)
        if name == "transaction isolation level":
            name, value = "tx_isolation", value.replace(" ", "-")
        if name in _ISOLATION_NAMES:
            name = "tx_isolation"
            value = _numbered_isolation(value)
        self._store(name, value, assignment.scope)

    def _store(self, name: str, value: str, scope: VariableScope) -> None:
        if scope in _GLOBAL_SCOPES:
            # A session keeps the value that it began with.
            self.values.setdefault(name, self.global_values.get(name, ""))
            self.global_values[name] = "" if value == "DEFAULT" else value
            return
        self.values[name] = self.global_values.get(name, "") if value == "DEFAULT" else value
        if name == "binlog_format":
            self.is_format_set = True

    def _mode(self, text: str) -> LoggingMode:
        default, *numbered = _FORMATS[self.server.is_mariadb]
        if text.isdigit() and int(text) < len(numbered):
            return numbered[int(text)]
        return LoggingMode[text] if text in LoggingMode.__members__ else default


def isolation_level(value: str) -> Isolation:
    """The level that SET TRANSACTION names."""
    return _ISOLATIONS.get(plain(value).replace(" ", "-"), Isolation.REPEATABLE_READ)


def plain(value: str) -> str:
    """The text of a value: without its quotes, in capitals."""
    text = value.strip()
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        text = text[1:-1]
    return text.upper()


def _numbered_isolation(value: str) -> str:
    names = tuple(_ISOLATIONS)
    return names[int(value)] if value.isdigit() and int(value) < len(names) else value


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """What of a session forbids a SET.

    Attributes:
        is_transaction_active: BEGIN, or a statement of a transaction under autocommit=0.
        is_sub_statement: In a stored function or trigger.
        has_temporary_tables: Some are open.
        is_row_now: MariaDB: statements are logged as rows at the moment.
        may_switch_with_temporary: Several binlogs are defined, which have rules of their own.
    """

    is_transaction_active: bool
    is_sub_statement: bool
    has_temporary_tables: bool
    is_row_now: bool
    may_switch_with_temporary: bool


def refusal(
    assignment: Assignment, variables: Variables, situation: Situation
) -> LoggingError | None:
    """Why an assignment is refused; None if it is not."""
    name = assignment.name
    if name == "transaction isolation level" or name in _ISOLATION_NAMES:
        is_next = assignment.scope is VariableScope.UNSAID and name not in _ISOLATION_NAMES
        return _no_isolation() if is_next and situation.is_transaction_active else None
    if name not in _LOGGED or assignment.scope in _GLOBAL_SCOPES:
        return None
    if name == "binlog_format" and not situation.may_switch_with_temporary:
        error = _temporary_refusal(assignment, variables, situation)
        if error is not None:
            return error
    if situation.is_sub_statement:
        return _IN_FUNCTION[name]
    return _IN_TRANSACTION[name] if situation.is_transaction_active else None


def _temporary_refusal(
    assignment: Assignment, variables: Variables, situation: Situation
) -> LoggingError | None:
    if not situation.has_temporary_tables:
        return None
    if not variables.server.is_mariadb:
        return _SESSION_FORMAT
    target = variables.copy()
    target.assign(assignment)
    leaves_rows = variables.logging_mode is LoggingMode.ROW or (
        variables.logging_mode is LoggingMode.MIXED and situation.is_row_now
    )
    return _OUT_OF_ROWS if leaves_rows and target.logging_mode is LoggingMode.STATEMENT else None


def _no_isolation() -> LoggingError:
    return LoggingError(
        errno=1568,
        sqlstate="25001",
        symbol="ER_CANT_CHANGE_TX_CHARACTERISTICS",
        message="Transaction characteristics can't be changed while a transaction is in progress",
    )


_OUT_OF_ROWS: Final = LoggingError(
    errno=1559,
    symbol="ER_TEMP_TABLE_PREVENTS_SWITCH_OUT_OF_RBR",
    message=(
        "Cannot switch out of the row-based binary log format when the session has open temporary "
        "tables"
    ),
)
_SESSION_FORMAT: Final = LoggingError(
    errno=3745,
    symbol="ER_TEMP_TABLE_PREVENTS_SWITCH_SESSION_BINLOG_FORMAT",
    message=(
        "Changing @@session.binlog_format is disallowed when the session has open temporary "
        "table(s). You could wait until these temporary table(s) are dropped and try again."
    ),
)
_IN_FUNCTION: Final = {
    "binlog_format": LoggingError(
        errno=1560,
        symbol="ER_STORED_FUNCTION_PREVENTS_SWITCH_BINLOG_FORMAT",
        message="Cannot change the binary logging format inside a stored function or trigger",
    ),
    _DIRECT: LoggingError(
        errno=1686,
        symbol="ER_STORED_FUNCTION_PREVENTS_SWITCH_BINLOG_DIRECT",
        message="Cannot change the binlog direct flag inside a stored function or trigger",
    ),
    "sql_log_bin": LoggingError(
        errno=1695,
        symbol="ER_STORED_FUNCTION_PREVENTS_SWITCH_SQL_LOG_BIN",
        message="Cannot change the sql_log_bin inside a stored function or trigger",
    ),
}
_IN_TRANSACTION: Final = {
    "binlog_format": LoggingError(
        errno=1679,
        symbol="ER_INSIDE_TRANSACTION_PREVENTS_SWITCH_BINLOG_FORMAT",
        message="Cannot modify @@session.binlog_format inside a transaction",
    ),
    _DIRECT: LoggingError(
        errno=1685,
        symbol="ER_INSIDE_TRANSACTION_PREVENTS_SWITCH_BINLOG_DIRECT",
        message=(
            "Cannot modify @@session.binlog_direct_non_transactional_updates inside a transaction"
        ),
    ),
    "sql_log_bin": LoggingError(
        errno=1694,
        symbol="ER_INSIDE_TRANSACTION_PREVENTS_SWITCH_SQL_LOG_BIN",
        message="Cannot modify @@session.sql_log_bin inside a transaction",
    ),
}
