"""The server whose rules are followed, and the session's state: both decide how a statement is logged."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from functools import cache
from typing import NamedTuple, Self

from binlane.errors import ConfigError
from binlane.log.codec.types import Flavor
from binlane.statements.sql.servers import (
    ASSUMED,
    NEWEST,
    SERIES,
    Fact,
    LoggingMode,
    Version,
    default,
    default_collation,
    has,
)


@dataclass(frozen=True, slots=True)
class Server:
    """A server's flavor and version, which decide how statements are logged.

    Attributes:
        flavor: Name of the flavor: `mariadb` or `mysql`.
        version: Version of the server as three numbers.
        is_mariadb: True if the flavor is MariaDB, not MySQL.
        facts: Properties of this version that only some versions have.
    """

    flavor: str
    version: Version
    is_mariadb: bool = field(init=False, repr=False, compare=False)
    facts: frozenset[Fact] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "is_mariadb", self.flavor == "mariadb")
        object.__setattr__(self, "facts", _facts(self.flavor, self.version))

    @property
    def has_server_foreign_keys(self) -> bool:
        """True if foreign keys are the server's own work, not InnoDB's: MySQL since 9.6."""
        return self.has(Fact.SERVER_FOREIGN_KEYS)

    @property
    def has_atomic_ddl(self) -> bool:
        """True if DDL of InnoDB tables is committed together with its log: MySQL since 8.0."""
        return self.has(Fact.ATOMIC_DDL)

    @property
    def fills_as_it_creates(self) -> bool:
        """True if CREATE … SELECT logs the table and its rows in one group.

        MySQL before 8.0.21 logs the table by itself first.
        """
        return self.has(Fact.FILLS_AS_IT_CREATES)

    def has(self, fact: Fact) -> bool:
        """True if this version has a property that only some versions have."""
        return fact in self.facts

    def default(self, variable: str) -> str:
        """The value that a stock server gives a variable; empty if it is not known."""
        return default(variable, self.flavor, self.version)

    def default_collation(self, charset: str) -> str:
        """The collation of a character set where none is named."""
        return default_collation(charset, Flavor(self.flavor), self.version)

    @classmethod
    def of(cls, flavor: str, version: str) -> Self:
        """Return the server of a running version; `version` begins with its numbers."""
        parts = version.partition("-")[0].split(".")
        numbers = [int(part) for part in parts if part.isdigit()] + [0, 0, 0]
        return cls(flavor, (numbers[0], numbers[1], numbers[2]))

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `mariadb`, `mysql`, `mariadb:11.8`, `mysql:8.0.36`.

        Raises:
            ConfigError: If the text is something else, or there is no such version.
        """
        flavor, _, version = text.strip().lower().partition(":")
        if flavor not in ASSUMED:
            raise ConfigError(
                f"{text!r} is no server", key="--server", hint="say mariadb or mysql, as mysql:8.0"
            )
        if not version:
            return cls(flavor, ASSUMED[flavor])
        parts = version.partition("-")[0].split(".")
        if len(parts) > 3 or not all(part.isdigit() for part in parts):
            raise ConfigError(
                f"{version!r} is no version", key="--server", hint="say it as mysql:8.0.36"
            )
        return cls(flavor, _version(flavor, [int(part) for part in parts]))


def _version(flavor: str, numbers: list[int]) -> Version:
    """Return the version of one, two or three numbers; the numbers left out are the newest."""
    meant = [series for series in SERIES[flavor] if list(series) == numbers[: len(series)]]
    if len(numbers) == 1:
        meant = [series for series in SERIES[flavor] if series[0] == numbers[0]]
    if not meant:
        known = ", ".join(f"{major}.{minor}" for major, minor in SERIES[flavor])
        said = ".".join(map(str, numbers))
        raise ConfigError(f"there is no {flavor} {said}", key="--server", hint=f"known are {known}")
    major, minor = meant[-1]
    return (major, minor, numbers[2] if len(numbers) > 2 else NEWEST)


@cache
def _facts(flavor: str, version: Version) -> frozenset[Fact]:
    return frozenset([fact for fact in Fact if has(fact, flavor, version)])


class Isolation(IntEnum):
    """Transaction isolation levels, weakest first."""

    READ_UNCOMMITTED = 0
    READ_COMMITTED = 1
    REPEATABLE_READ = 2
    SERIALIZABLE = 3


class Characteristics(NamedTuple):
    """Characteristics that SET TRANSACTION gives to transactions.

    Attributes:
        isolation: Isolation level of the transactions.
        is_read_only: Transactions change no table that is not temporary.
    """

    isolation: Isolation = Isolation.REPEATABLE_READ
    is_read_only: bool = False


class Circumstances(NamedTuple):
    """The session in which a statement is decided.

    Attributes:
        server: Server whose rules are followed.
        logging_mode: Value of binlog_format, or the binlog's own mode.
        isolation: Isolation level of the transaction.
        locked_isolation: Isolation level under which LOCK TABLES locked the tables, which decides how their
            engines may be logged; None where the tables are opened now.
        is_in_transaction: A transaction of several statements is open (BEGIN, or autocommit=0).
        is_trx_cache_empty: Nothing stands in the transaction cache.
        is_direct: The session's value of binlog_direct_non_transactional_updates.
        is_row_forced: Rows are logged from an earlier statement on: in MariaDB while temporary
            tables are open whose creation is not logged; in both servers for the rest of a CALL.
        is_in_xa: An XA transaction is active.
        is_sub_statement: The statement runs inside of a stored function or trigger.
        is_bulk: The statement comes with array binding of MariaDB's protocol.
        is_row_injection: The statement is BINLOG, which brings row events.
        unlogged_temporary: Names of open temporary tables whose creation this binlog does not hold.
        has_locked_tables: LOCK TABLES is in effect.
        autoinc_lock_mode: Value of the variable innodb_autoinc_lock_mode.
        delayed_mode: The global binlog_format, which holds for INSERT DELAYED.
        gtid_consistency: Value of MySQL's enforce_gtid_consistency: `OFF`, `WARN` or `ON`.
    """

    server: Server
    logging_mode: LoggingMode
    isolation: Isolation = Isolation.REPEATABLE_READ
    locked_isolation: Isolation | None = None
    is_in_transaction: bool = False
    is_trx_cache_empty: bool = True
    is_direct: bool = False
    is_row_forced: bool = False
    is_in_xa: bool = False
    is_sub_statement: bool = False
    is_bulk: bool = False
    is_row_injection: bool = False
    unlogged_temporary: frozenset[object] = frozenset()
    has_locked_tables: bool = False
    autoinc_lock_mode: int = 1
    delayed_mode: LoggingMode = LoggingMode.MIXED
    gtid_consistency: str = "OFF"

    @property
    def is_below_repeatable_read(self) -> bool:
        """True if the isolation level is READ COMMITTED or READ UNCOMMITTED."""
        return self.isolation < Isolation.REPEATABLE_READ

    @property
    def is_opened_below_repeatable_read(self) -> bool:
        """True if the tables were opened under READ COMMITTED or READ UNCOMMITTED."""
        opened = self.isolation if self.locked_isolation is None else self.locked_isolation
        return opened < Isolation.REPEATABLE_READ
