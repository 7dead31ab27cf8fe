"""Values of the variables that a session's statements are logged with, as status variables.

The values are asked of the source with one SELECT, because only the source knows them: SET is but one
of the ways to change them. The order of the status variables is that in which each server writes
them, which is not the order of their codes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from struct import Struct
from types import MappingProxyType
from typing import Final

from binlane.log.codec.client_text import AS_IT_IS
from binlane.log.codec.status_numbers import LOCALE_NUMBERS, collation_id, sql_mode_bits
from binlane.log.codec.types import Flavor
from binlane.statements.policy.server import Server
from binlane.statements.sql.servers import Fact, Version, default_collation

_AUTO_IS_NULL: Final = 1 << 14
_NO_CHECK_CONSTRAINTS: Final = 1 << 15
_EXPLICIT_DEFAULTS: Final = 1 << 24
_NO_FOREIGN_KEYS: Final = 1 << 26
_NO_UNIQUE: Final = 1 << 27
_IF_EXISTS: Final = 1 << 28
_INSERT_HISTORY: Final = 1 << 30

_COMMON: Final = (
    *("@@pseudo_thread_id", "DATABASE()", "@@sql_mode", "@@auto_increment_increment"),
    *("@@auto_increment_offset", "@@character_set_client", "@@collation_connection"),
    *("@@collation_server", "@@time_zone", "@@lc_time_names", "@@collation_database"),
    *("@@sql_auto_is_null", "@@foreign_key_checks", "@@unique_checks", "@@timestamp"),
)
_MARIADB: Final = (
    *("@@check_constraint_checks", "@@explicit_defaults_for_timestamp", "@@sql_if_exists"),
    *("@@secure_timestamp", "@@character_set_collations", "@@system_versioning_insert_history"),
)
_MYSQL: Final = (
    *("@@default_collation_for_utf8mb4", "@@sql_require_primary_key"),
    *("@@explicit_defaults_for_timestamp", "@@enable_cascade_triggers"),
)
_SINCE: Final[Mapping[str, Version]] = MappingProxyType(
    {
        "@@secure_timestamp": (10, 3, 7),
        "@@sql_if_exists": (10, 5, 2),
        "@@system_versioning_insert_history": (10, 11, 0),
        "@@character_set_collations": (11, 2, 1),
        "@@enable_cascade_triggers": (9, 6, 0),
    }
)
"""From which version on of its flavor a server has a variable."""


def asked_values(server: Server) -> tuple[str, ...]:
    """The expressions whose values `session_values` takes."""
    own = _MARIADB if server.is_mariadb else _MYSQL
    return (*_COMMON, *(name for name in own if server.version >= _SINCE.get(name, (0, 0, 0))))


_FLAGS2: Final = Struct("<BI")
_SQL_MODE: Final = Struct("<BQ")
_AUTO_INCREMENT: Final = Struct("<BHH")
_CHARSET: Final = Struct("<BHHH")
_U16: Final = Struct("<BH")
_PAIR: Final = Struct("<HH")
_COMPILED: Final = (10, 11, 0)
"""A MariaDB whose default collations are those that its character sets were compiled with."""
_CATALOG: Final = b"\x06\x03std"
_ALIKE_MAX: Final = 4096
_alike: Final[dict[ContextValues, object]] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextValues:
    """Values of a session's variables, as far as its statements are logged with them.

    Attributes:
        flavor: Flavor whose log is written.
        thread_id: Session's number, as its temporary tables know it.
        database: Default database; empty for none.
        flags2: Bits of the status variable FLAGS2.
        sql_mode: Bits of the variable `sql_mode`.
        auto_increment: Values of auto_increment_increment and auto_increment_offset.
        client_charset: Character set of the texts that the client sends.
        charset: Ids of the client's character set, of the connection's collation, and of the server's.
        locale: Number of the locale in lc_time_names.
        database_collation: Id of collation_database where that is not the default database's own; else 0.
        timestamp: Value of `timestamp`, in seconds.
        may_set_timestamp: True if an ordinary account may set the timestamp.
        utf8mb4_collation: Id of MySQL's default_collation_for_utf8mb4; 0 on MariaDB.
        fires_in_cascades: Value of MySQL's variable enable_cascade_triggers.
        requires_primary_key: Value of MySQL's variable sql_require_primary_key.
        has_explicit_defaults: Value of the variable explicit_defaults_for_timestamp.
        collations: For each character set of MariaDB's character_set_collations the id of the collation that
            it was compiled with, and of the one that it has by default; None of other servers.
        is_text_as_it_came: True if the session's texts are as the gateway reads them.
        heads: Status variables before the time zone's; the second entry adds those that only statements that
            name a character set have.
        tail: Status variables behind the time zone, up to those in which statements differ.
        collation: MySQL's status variable of the default collation of utf8mb4.
        alike: The same object for all sessions whose values differ in thread and timestamp alone.
        known: Status variables of statements by the id of their use of context, which is kept with them.
    """

    flavor: Flavor
    thread_id: int = field(compare=False)
    database: str
    flags2: int
    sql_mode: int
    auto_increment: tuple[int, int]
    client_charset: str
    charset: tuple[int, int, int]
    time_zone: str
    locale: int
    database_collation: int
    timestamp: float = field(compare=False)
    may_set_timestamp: bool
    utf8mb4_collation: int = 0
    fires_in_cascades: bool = False
    requires_primary_key: bool = False
    has_explicit_defaults: bool = False
    collations: tuple[tuple[int, int], ...] | None = None
    is_text_as_it_came: bool = field(init=False, repr=False)
    heads: tuple[bytes, bytes] = field(init=False, repr=False)
    zone: bytes = field(init=False, repr=False)
    tail: bytes = field(init=False, repr=False)
    collation: bytes = field(init=False, repr=False)
    alike: object = field(init=False, repr=False, compare=False)
    known: dict[int, tuple[object, bytes]] = field(
        init=False, repr=False, compare=False, default_factory=dict
    )

    def __post_init__(self) -> None:
        increments = b""
        if self.auto_increment != (1, 1):
            increments = _AUTO_INCREMENT.pack(3, *self.auto_increment)
        head = b"".join(
            (
                _FLAGS2.pack(0, self.flags2),
                _SQL_MODE.pack(1, self.sql_mode),
                _CATALOG,
                increments,
            )
        )
        charset = _CHARSET.pack(4, *self.charset)
        collations = b""
        if self.collations is not None:
            pairs = (_PAIR.pack(*pair) for pair in self.collations)
            collations = bytes((131, len(self.collations))) + b"".join(pairs)
        zone = self.time_zone.encode()
        tail = (
            _U16.pack(7, self.locale) if self.locale else b"",
            _U16.pack(8, self.database_collation) if self.database_collation else b"",
        )
        object.__setattr__(self, "heads", (head + charset, head + collations + charset))
        object.__setattr__(self, "zone", bytes((5, len(zone))) + zone)
        object.__setattr__(self, "tail", b"".join(tail))
        object.__setattr__(self, "is_text_as_it_came", self.client_charset in AS_IT_IS)
        object.__setattr__(self, "collation", _U16.pack(18, self.utf8mb4_collation))
        if len(_alike) >= _ALIKE_MAX:
            _alike.clear()
        object.__setattr__(self, "alike", _alike.setdefault(self, object()))

    def in_routine(
        self, mode: str, charset: str, connection: str, database_collation: str | None
    ) -> ContextValues | None:
        """The values while a routine runs; None where one of them is not known to binlane.

        Args:
            mode: Value of the routine's sql_mode.
            charset: Value of character_set_client when the routine was created.
            connection: Value of collation_connection when the routine was created.
            database_collation: Collation of the routine's database at its creation, where the database has
                another one now.
        """
        flavor = self.flavor
        client = collation_id(_compiled_collation(charset, flavor), flavor)
        bits = sql_mode_bits(mode, flavor)
        named = collation_id(connection, flavor)
        database = 0 if database_collation is None else collation_id(database_collation, flavor)
        if client is None or bits is None or named is None or database is None:
            return None
        return replace(
            self,
            sql_mode=bits,
            client_charset=charset,
            charset=(client, named, self.charset[2]),
            database_collation=database,
        )


def context_values(
    given: Mapping[str, str | None],
    server: Server,
    *,
    database_collation: str | None,
) -> ContextValues | None:
    """The values of a session; None where one of them is not known to binlane.

    Args:
        given: Values that the source answered, by the expressions of `asked_values`.
        server: The server that is the source.
        database_collation: The default database's own collation; None for the value of `collation_database`.
    """
    flavor = Flavor(server.flavor)
    charset = given["@@character_set_client"] or ""
    pairs = _collations(given.get("@@character_set_collations"), flavor)
    compiled = collation_id(_compiled_collation(charset, flavor), flavor)
    ids = (
        dict(pairs or ()).get(compiled or 0, compiled),
        collation_id(given["@@collation_connection"] or "", flavor),
        collation_id(given["@@collation_server"] or "", flavor),
    )
    mode = sql_mode_bits(given["@@sql_mode"] or "", flavor)
    locale = LOCALE_NUMBERS.get(given["@@lc_time_names"] or "")
    current = given["@@collation_database"] or ""
    own = 0
    if database_collation is not None and database_collation != current:
        own = collation_id(current, flavor) or -1
    client, connection, of_server = ids
    if client is None or connection is None or of_server is None or own < 0:
        return None
    if mode is None or locale is None or pairs == _NOT_KNOWN:
        return None
    of_utf8mb4 = 0
    if flavor is Flavor.MYSQL:
        found = collation_id(given["@@default_collation_for_utf8mb4"] or "", flavor)
        if found is None:
            return None
        of_utf8mb4 = found
    return ContextValues(
        flavor=flavor,
        thread_id=int(given["@@pseudo_thread_id"] or 0),
        database=given["DATABASE()"] or "",
        flags2=_flags2(given, server),
        sql_mode=mode,
        auto_increment=(
            int(given["@@auto_increment_increment"] or 1),
            int(given["@@auto_increment_offset"] or 1),
        ),
        client_charset=charset,
        charset=(client, connection, of_server),
        time_zone=given["@@time_zone"] or "",
        locale=locale,
        database_collation=own,
        timestamp=float(given["@@timestamp"] or 0),
        may_set_timestamp=given.get("@@secure_timestamp", "NO") == "NO",
        utf8mb4_collation=of_utf8mb4,
        fires_in_cascades=_is_on(given, "@@enable_cascade_triggers"),
        requires_primary_key=_is_on(given, "@@sql_require_primary_key"),
        collations=pairs,
        has_explicit_defaults=_is_on(given, "@@explicit_defaults_for_timestamp"),
    )


_NOT_KNOWN: Final = ((-1, -1),)


def _compiled_collation(charset: str, flavor: Flavor) -> str:
    """The collation that a character set was compiled with, whatever is its default one."""
    return default_collation(charset, flavor, _COMPILED if flavor is Flavor.MARIADB else None)


def _collations(text: str | None, flavor: Flavor) -> tuple[tuple[int, int], ...] | None:
    """Pairs of ids of the collations in character_set_collations; None without that variable."""
    if text is None:
        return None
    found = []
    for one in filter(None, text.split(",")):
        charset, _, chosen = one.partition("=")
        compiled = collation_id(_compiled_collation(charset, flavor), flavor)
        own = collation_id(chosen, flavor)
        if compiled is None or own is None:
            return _NOT_KNOWN
        found.append((compiled, own))
    return tuple(found)


def _flags2(given: Mapping[str, str | None], server: Server) -> int:
    flags = _AUTO_IS_NULL if _is_on(given, "@@sql_auto_is_null") else 0
    flags |= 0 if _is_on(given, "@@foreign_key_checks") else _NO_FOREIGN_KEYS
    flags |= 0 if _is_on(given, "@@unique_checks") else _NO_UNIQUE
    if server.is_mariadb:
        logs_checks = server.has(Fact.LOGS_ALL_OPTIONS)
        if logs_checks and not _is_on(given, "@@check_constraint_checks"):
            flags |= _NO_CHECK_CONSTRAINTS
        flags |= _EXPLICIT_DEFAULTS if _is_on(given, "@@explicit_defaults_for_timestamp") else 0
        flags |= _IF_EXISTS if _is_on(given, "@@sql_if_exists") else 0
        flags |= _INSERT_HISTORY if _is_on(given, "@@system_versioning_insert_history") else 0
    return flags


def _is_on(given: Mapping[str, str | None], name: str) -> bool:
    return given.get(name) in {"1", "ON"}
