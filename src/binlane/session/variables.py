"""The session's variables that bear on logging, and what SET does to them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Final

from binlane.policy.procedure import Isolation
from binlane.policy.refusals import LoggingError
from binlane.policy.server import Server
from binlane.sql.facts import Assignment, VariableScope
from binlane.sql.logging_mode import LoggingMode
from binlane.sql.sql_mode import Quoting

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

_ANSI_QUOTES: Final = frozenset(
    ("ANSI", "ANSI_QUOTES", "ORACLE", "DB2", "MAXDB", "MSSQL", "POSTGRESQL")
)
"""Modes in which double quotes hold names."""
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
        connection: character_set_connection and collation_connection; None if not set.
    """

    server: Server
    values: dict[str, str] = field(default_factory=dict)
    global_values: dict[str, str] = field(default_factory=dict)
    is_format_set: bool = False
    connection: tuple[str, str] | None = None

    _settings: _Settings | None = field(default=None, compare=False, repr=False)

    @property
    def settings(self) -> _Settings:
        """What the values mean."""
        found = self._settings
        if found is None:
            found = self._settings = _settings_of(self)
        return found

    @property
    def logging_mode(self) -> LoggingMode:
        """binlog_format of the session."""
        return self.settings.logging_mode

    @property
    def global_logging_mode(self) -> LoggingMode:
        """binlog_format of the server."""
        return self.settings.global_logging_mode

    @property
    def isolation(self) -> Isolation:
        """Isolation level of the session's transactions."""
        return self.settings.isolation

    @property
    def is_autocommit(self) -> bool:
        """Whether a statement outside BEGIN is a transaction by itself."""
        return self.settings.is_autocommit

    @property
    def is_logged(self) -> bool:
        """sql_log_bin."""
        return self.settings.is_logged

    @property
    def is_direct(self) -> bool:
        """binlog_direct_non_transactional_updates."""
        return self.settings.is_direct

    @property
    def quoting(self) -> Quoting:
        """How the session's statements are quoted."""
        return self.settings.quoting

    @property
    def ansi_quotes(self) -> bool:
        """Whether double quotes hold names."""
        return self.settings.quoting["ansi_quotes"]

    @property
    def is_oracle(self) -> bool:
        """sql_mode ORACLE of MariaDB."""
        return self.settings.is_oracle

    @property
    def no_backslash_escapes(self) -> bool:
        """Whether a backslash in a string is one."""
        return self.settings.quoting["no_backslash_escapes"]

    @property
    def checks_foreign_keys(self) -> bool:
        """foreign_key_checks."""
        return self.settings.checks_foreign_keys

    @property
    def autoinc_lock_mode(self) -> int:
        """innodb_autoinc_lock_mode."""
        return self.settings.autoinc_lock_mode

    @property
    def gtid_consistency(self) -> str:
        """enforce_gtid_consistency."""
        return self.settings.gtid_consistency

    @property
    def shown_options(self) -> str:
        """What MariaDB's SHOW BINLOG EVENTS shows before the text of a statement."""
        if not self.server.is_mariadb or self.values.keys().isdisjoint(_SHOWN_OPTIONS):
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
        self._settings = None
        if scope in _GLOBAL_SCOPES:
            # A session keeps the value that it began with.
            self.values.setdefault(name, self.global_values.get(name, ""))
            self.global_values[name] = "" if value == "DEFAULT" else value
            return
        self.values[name] = self.global_values.get(name, "") if value == "DEFAULT" else value
        if name == "binlog_format":
            self.is_format_set = True


@dataclass(frozen=True, slots=True, kw_only=True)
class _Settings:
    """What the values of a session's variables mean; attributes as in `Variables`."""

    logging_mode: LoggingMode
    global_logging_mode: LoggingMode
    isolation: Isolation
    is_autocommit: bool
    is_logged: bool
    is_direct: bool
    quoting: Quoting
    is_oracle: bool
    checks_foreign_keys: bool
    autoinc_lock_mode: int
    gtid_consistency: str


def _settings_of(variables: Variables) -> _Settings:
    is_mariadb = variables.server.is_mariadb
    isolation = variables.text("tx_isolation") or variables.text("transaction_isolation")
    modes = variables.text("sql_mode").split(",")
    return _Settings(
        logging_mode=_mode(variables.text("binlog_format"), is_mariadb=is_mariadb),
        global_logging_mode=_mode(
            variables.global_values.get("binlog_format", ""), is_mariadb=is_mariadb
        ),
        isolation=_ISOLATIONS.get(isolation, Isolation.REPEATABLE_READ),
        is_autocommit=variables.is_on("autocommit", default=True),
        is_logged=variables.is_on("sql_log_bin", default=True),
        is_direct=variables.is_on(_DIRECT, default=False),
        quoting=Quoting(
            ansi_quotes=not _ANSI_QUOTES.isdisjoint(modes),
            no_backslash_escapes="NO_BACKSLASH_ESCAPES" in modes,
        ),
        is_oracle="ORACLE" in modes,
        checks_foreign_keys=variables.is_on("foreign_key_checks", default=True),
        autoinc_lock_mode=variables.number(
            "innodb_autoinc_lock_mode", default=1 if is_mariadb else 2
        ),
        gtid_consistency=variables.text("enforce_gtid_consistency") or "OFF",
    )


def _mode(text: str, *, is_mariadb: bool) -> LoggingMode:
    default, *numbered = _FORMATS[is_mariadb]
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
        has_temporary_tables: Some are open.
        is_row_now: MariaDB: statements are logged as rows at the moment.
        may_switch_with_temporary: Several binlogs are defined, which have rules of their own.
    """

    is_transaction_active: bool
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
    return _IN_TRANSACTION[name] if situation.is_transaction_active else None


def refusal_in_function(assignments: Iterable[Assignment]) -> LoggingError | None:
    """Why a SET in a stored function or trigger is refused; None if it is not."""
    for assignment in assignments:
        if assignment.name in _LOGGED and assignment.scope not in _GLOBAL_SCOPES:
            return _IN_FUNCTION[assignment.name]
    return None


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
