"""The session's variables that bear on logging, and the effect of SET on them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field
from functools import cache
from types import MappingProxyType
from typing import Final

from binlane.log.codec.charsets import charset_of
from binlane.statements.policy.server import Characteristics, Isolation, Server
from binlane.statements.session.log_events import OPTION_BITS, status_vars
from binlane.statements.sql.facts import VariableAssignment, VariableScope
from binlane.statements.sql.lexis import lexed_as
from binlane.statements.sql.schema import CreationContext
from binlane.statements.sql.servers import Dialect, LoggingMode, RowImage, charset_of_collation

_ISOLATIONS: Final = {
    "READ-UNCOMMITTED": Isolation.READ_UNCOMMITTED,
    "READ-COMMITTED": Isolation.READ_COMMITTED,
    "REPEATABLE-READ": Isolation.REPEATABLE_READ,
    "SERIALIZABLE": Isolation.SERIALIZABLE,
}
_FORMATS: Final = ("MIXED", "STATEMENT", "ROW")
_IMAGES: Final = tuple(RowImage)
"""Row images for the numbers 0, 1 and 2."""

_GTID_CONSISTENCIES: Final = {"0": "OFF", "FALSE": "OFF", "1": "ON", "TRUE": "ON", "2": "WARN"}
"""Values that may be given in another form."""
_ON: Final = frozenset(("1", "ON", "TRUE"))
_CLIENT_CHARSETS: Final = frozenset(("names", "character set"))
ISOLATION_NAMES: Final = frozenset(("tx_isolation", "transaction_isolation"))
ACCESS_NAMES: Final = frozenset(
    ("transaction access mode", "tx_read_only", "transaction_read_only")
)
DIRECT: Final = "binlog_direct_non_transactional_updates"
OF_BINLOGS: Final = frozenset(("binlog_format", "binlog_row_image", DIRECT, "sql_log_bin"))
"""Variables that decide how a session is logged."""
NOTHING_SHOWN: Final[Mapping[str, str]] = MappingProxyType({})
_GLOBAL_SCOPES: Final = frozenset((VariableScope.GLOBAL, VariableScope.PERSIST))


@dataclass(slots=True)
class Variables:
    """System variables of a session, and the global ones that rule it.

    Attributes:
        server: Server whose defaults are used.
        values: Session values by name in lower case, as texts without quotes, in capitals.
        global_values: Global values that differ from the server's own defaults.
        is_format_set: The session itself has set binlog_format.
        connection: Values of character_set_connection and collation_connection; None if not set.
        settings: Meaning of the values in force.
    """

    server: Server
    values: dict[str, str] = field(default_factory=dict)
    global_values: dict[str, str] = field(default_factory=dict)
    is_format_set: bool = False
    connection: tuple[str, str] | None = None

    settings: Settings = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        self.settings = _settings_of(self)

    def status_vars(self, *, is_atomic: bool = False) -> bytes:
        """Status variables of a statement's event; `is_atomic` as for `log_events.status_vars`."""
        return status_vars(self.settings.flags2, is_atomic=is_atomic)

    def text(self, name: str) -> str:
        """Return a variable's value in capitals; empty if the value is not known."""
        return self.values.get(name, self.global_values.get(name, ""))

    @property
    def is_strict(self) -> bool:
        """True if sql_mode is surely strict: as the servers have it, or as it was set."""
        if "sql_mode" not in self.values and "sql_mode" not in self.global_values:
            return True
        modes = self.text("sql_mode")
        return "STRICT_" in modes or "TRADITIONAL" in modes

    def is_on(self, name: str, *, default: bool) -> bool:
        """True if a variable that can be ON or OFF is ON."""
        text = self.values.get(name, self.global_values.get(name, ""))
        return text in _ON if text else default

    def number(self, name: str, *, default: int) -> int:
        """Return the value of a numeric variable."""
        text = self.text(name)
        return int(text) if text.isdigit() else default

    @property
    def context(self) -> CreationContext | None:
        """Return the context of a program that the session makes; None if it is not known."""
        if "sql_mode" not in self.values and "sql_mode" not in self.global_values:
            return None
        collation = "" if self.connection is None else self.connection[1]
        return CreationContext(sql_mode=self.text("sql_mode"), collation=collation)

    @contextmanager
    def running(self, context: CreationContext | None) -> Iterator[None]:
        """Set the values in which a program was made, for as long as it runs.

        Whatever it sets of them itself ends with it.
        """
        before, connection = self.values.get("sql_mode"), self.connection
        charset = self.text("character_set_client")
        # A program's statements are read when it is made.
        self._have_client_charset("")
        if context is not None:
            self._have_mode(context.sql_mode)
            if context.collation:
                self.connection = (charset_of_collation(context.collation), context.collation)
        try:
            yield
        finally:
            self._have_mode(before)
            self._have_client_charset(charset)
            self.connection = connection

    def _have_mode(self, sql_mode: str | None) -> None:
        """Set the session's sql_mode; None: the global one."""
        if self.values.get("sql_mode") == sql_mode:
            return
        if sql_mode is None:
            del self.values["sql_mode"]
        else:
            self.values["sql_mode"] = sql_mode
        self.settings = _settings_of(self)

    def _have_client_charset(self, charset: str) -> None:
        """Set the session's character_set_client; empty: one that is read as UTF-8."""
        if self.text("character_set_client") != charset:
            self.values["character_set_client"] = charset
            self.settings = _settings_of(self)

    def copy(self) -> Variables:
        """Copy the present values, to be restored after SET STATEMENT … FOR."""
        found = copy(self)
        found.values, found.global_values = self.values.copy(), self.global_values.copy()
        return found

    def become(self, kept: Variables) -> None:
        """Have the values of a copy."""
        self.values, self.global_values = kept.values.copy(), kept.global_values.copy()
        self.is_format_set, self.connection = kept.is_format_set, kept.connection
        self.settings = kept.settings

    def begin_with(
        self, values: Mapping[str, str], before: Variables | None, shown: Mapping[str, str]
    ) -> None:
        """Set the values of the binlogs' variables: global ones, and those that the session set itself.

        The server's values for its own log are forgotten.

        Args:
            values: Global values, in capitals, by name.
            before: Variables of the session as it was followed before; None for a session that begins.
            shown: Values of other variables as the server shows them, by name in lower case.
        """
        for name, value in shown.items():
            if name in ISOLATION_NAMES:
                self.values["tx_isolation"] = _numbered_isolation(plain(value))
            else:
                self.values[name] = plain(value)
        own = {} if before is None else before.own_of_binlogs()
        for name in OF_BINLOGS:
            self.global_values.pop(name, None)
            self.values.pop(name, None)
        self.global_values |= values
        self.values |= {**values, **own}
        self.is_format_set = "binlog_format" in self.values
        self.settings = _settings_of(self)

    def own_of_binlogs(self) -> dict[str, str]:
        """The values of the binlogs' variables that the session has; no format that it has not set."""
        names = OF_BINLOGS if self.is_format_set else OF_BINLOGS - {"binlog_format"}
        return {name: self.values[name] for name in names if self.values.get(name)}

    def know_global(self, values: Mapping[str, str]) -> None:
        """Set other global values of the binlogs' variables; those of the session stay."""
        self.global_values |= values
        self.settings = _settings_of(self)

    def assign(self, assignment: VariableAssignment) -> None:
        """Carry out one assignment of SET that was found right."""
        name, value = assignment.name, plain(assignment.value)
        if name == "transaction isolation level":
            name, value = "tx_isolation", value.replace(" ", "-")
        if name in ISOLATION_NAMES:
            name = "tx_isolation"
            value = _numbered_isolation(value)
        if name == "transaction access mode":
            value = "ON" if value == "READ ONLY" else "OFF"
        if name in ACCESS_NAMES:
            name = "tx_read_only"
        self._store(name, value, assignment.scope)
        if name in _CLIENT_CHARSETS:
            self._store(
                "character_set_client", value.partition(" ")[0].strip("'\"`"), assignment.scope
            )

    @property
    def client_charset(self) -> str:
        """Return character_set_client; empty if the value is not known."""
        charset = self.text("character_set_client")
        found = charset_of(int(charset)) if charset.isdigit() else charset.lower()
        return found or ""

    def _store(self, name: str, value: str, scope: VariableScope) -> None:
        if scope in _GLOBAL_SCOPES:
            # A session keeps the value that it began with.
            self.values.setdefault(name, self.global_values.get(name, ""))
            self.global_values[name] = "" if value == "DEFAULT" else value
        else:
            self.values[name] = self.global_values.get(name, "") if value == "DEFAULT" else value
            if name == "binlog_format":
                # DEFAULT gives the word back to the binlogs, unless somebody said the global value.
                self.is_format_set = value != "DEFAULT" or bool(self.global_values.get(name))
        self.settings = _settings_of(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The meaning of the values of a session's variables.

    Attributes:
        logging_mode: Value of the session's binlog_format.
        global_logging_mode: Value of the server's binlog_format.
        characteristics: Characteristics of the session's transactions.
        is_autocommit: A statement outside BEGIN is a transaction by itself.
        is_logged: The session's value of sql_log_bin.
        is_direct: The session's value of binlog_direct_non_transactional_updates.
        row_image: The session's value of binlog_row_image.
        dialect: Dialect in which the session's statements are read.
        checks_foreign_keys: The session's value of foreign_key_checks.
        autoinc_lock_mode: The server's value of innodb_autoinc_lock_mode.
        gtid_consistency: The server's value of enforce_gtid_consistency.
        compresses: The session's value of binlog_transaction_compression.
        finds_last_by_null: The session's value of sql_auto_is_null.
        flags2: Options of the session in the status variables of events.
    """

    logging_mode: LoggingMode
    global_logging_mode: LoggingMode
    characteristics: Characteristics
    is_autocommit: bool
    is_logged: bool
    is_direct: bool
    row_image: RowImage
    dialect: Dialect
    checks_foreign_keys: bool
    autoinc_lock_mode: int
    gtid_consistency: str
    compresses: bool
    finds_last_by_null: bool
    flags2: int


_KEPT_MAX: Final = 1024
"""Settings that are kept for all sessions."""
_LONG: Final = 4096
"""Characters of values from which on their settings are not kept."""
_BEARING: Final = (
    *("autocommit", "binlog_format", "binlog_row_image", DIRECT, "sql_log_bin", "sql_mode"),
    *("character_set_client", "foreign_key_checks", "tx_isolation", "transaction_isolation"),
    *("tx_read_only", "innodb_autoinc_lock_mode", "enforce_gtid_consistency"),
    *("binlog_transaction_compression", "sql_auto_is_null", "lower_case_table_names"),
    *(name for name in OPTION_BITS if name not in ("foreign_key_checks", "sql_auto_is_null")),
)
"""Variables that `Settings` are made of."""
_settings: Final[dict[tuple[object, ...], Settings]] = {}


def _settings_of(variables: Variables) -> Settings:
    """Return the meaning of values; sessions with equal values share it."""
    values, of_server = variables.values, variables.global_values
    own = [values.get(name) for name in _BEARING]
    others = [of_server.get(name) for name in _BEARING]
    key = (variables.server, *own, *others)
    found = _settings.get(key)
    if found is None:
        # Nothing but what the key has can come into it.
        bearing = copy(variables)
        bearing.values = {name: values[name] for name in _BEARING if name in values}
        bearing.global_values = {name: of_server[name] for name in _BEARING if name in of_server}
        found = _meaning(bearing)
        if len(_settings) >= _KEPT_MAX:
            _settings.clear()
        if sum(len(one) for one in (*own, *others) if one is not None) <= _LONG:
            _settings[key] = found
    return found


def _meaning(variables: Variables) -> Settings:
    server = variables.server
    isolation = variables.text("tx_isolation") or variables.text("transaction_isolation")
    has_case = variables.global_values.get("lower_case_table_names", "0") == "0"
    dialect = _dialect(
        variables.server,
        variables.text("sql_mode"),
        lower_case_names=not has_case,
        charset=lexed_as(variables.client_charset),
    )
    return Settings(
        logging_mode=_mode(variables.text("binlog_format"), server),
        global_logging_mode=_mode(variables.global_values.get("binlog_format", ""), server),
        characteristics=Characteristics(
            isolation=_ISOLATIONS.get(isolation, Isolation.REPEATABLE_READ),
            is_read_only=variables.is_on("tx_read_only", default=False),
        ),
        is_autocommit=variables.is_on("autocommit", default=True),
        is_logged=variables.is_on("sql_log_bin", default=True),
        is_direct=variables.is_on(DIRECT, default=False),
        row_image=_row_image(variables.text("binlog_row_image")),
        dialect=dialect,
        checks_foreign_keys=variables.is_on("foreign_key_checks", default=True),
        autoinc_lock_mode=variables.number(
            "innodb_autoinc_lock_mode", default=int(server.default("innodb_autoinc_lock_mode"))
        ),
        gtid_consistency=_gtid_consistency(variables),
        compresses=variables.is_on("binlog_transaction_compression", default=False),
        finds_last_by_null=variables.is_on("sql_auto_is_null", default=False),
        flags2=_flags2(variables),
    )


def _flags2(variables: Variables) -> int:
    flags2 = 0
    if not variables.values.keys().isdisjoint(OPTION_BITS):
        for name, (bit, value) in OPTION_BITS.items():
            if variables.is_on(name, default=not value) is bool(value):
                flags2 |= bit
    return flags2


@cache
def _dialect(server: Server, sql_mode: str, *, lower_case_names: bool, charset: str) -> Dialect:
    """Return the dialect of a session with an sql_mode and a character set."""
    bare = Dialect(flavor=server.flavor, version=server.version, lower_case_names=lower_case_names)
    return bare.in_modes(sql_mode)._replace(charset=charset)


def _mode(text: str, server: Server) -> LoggingMode:
    if text.isdigit() and int(text) < len(_FORMATS):
        text = _FORMATS[int(text)]
    known = text in LoggingMode.__members__
    return LoggingMode[text if known else server.default("binlog_format")]


def _row_image(text: str) -> RowImage:
    if text.isdigit() and int(text) < len(_IMAGES):
        return _IMAGES[int(text)]
    return RowImage[text] if text in RowImage.__members__ else RowImage.FULL


def _gtid_consistency(variables: Variables) -> str:
    """Return the word for enforce_gtid_consistency, from a word or number, or from the default."""
    name = "enforce_gtid_consistency"
    text = variables.text(name) or variables.server.default(name)
    return _GTID_CONSISTENCIES.get(text, text) or "OFF"


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
