"""The settings of a client that runs the text: session variables, set only on change.

MariaDB and MySQL know the same variables but for a few; each dialect prints what it knows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from binlane.errors import CodecError
from binlane.log.codec.buffer import Reader
from binlane.log.codec.charsets import charset_of
from binlane.log.codec.collation_names import collation_name
from binlane.log.codec.event import Event
from binlane.log.codec.numbers import decimal_from_bytes, decode_double
from binlane.log.codec.query import QueryEvent
from binlane.log.codec.status_vars import decode_status_vars
from binlane.log.codec.types import Flavor, HeaderFlag
from binlane.names import quote

if TYPE_CHECKING:
    from binlane.log.codec.variables import UserVarEvent

END: Final = "/*!*/;"
_Switch = tuple[str, int, bool]
# Bits of FLAGS2: name, bit, whether the bit switches the variable off.
_FLAGS2: Final[tuple[_Switch, ...]] = (
    ("foreign_key_checks", 26, True),
    ("sql_auto_is_null", 14, False),
    ("unique_checks", 27, True),
    ("autocommit", 19, True),
)
_FLAGS2_MARIADB: Final[tuple[_Switch, ...]] = (
    *_FLAGS2,
    ("check_constraint_checks", 15, True),
    ("sql_if_exists", 28, False),
    ("explicit_defaults_for_timestamp", 24, False),
    ("system_versioning_insert_history", 30, False),
)
# The releases of MariaDB that log explicit_defaults_for_timestamp begin with these; 10.10 is newer.
_DEFAULTS_SINCE: Final[Mapping[tuple[int, int], int]] = MappingProxyType(
    {(10, 5): 17, (10, 6): 9, (10, 7): 5, (10, 8): 4, (10, 9): 2}
)
_VERSION: Final = re.compile(r"(\d+)\.(\d+)\.(\d+)")
_SHORT_FORM_THREAD: Final = 999999999
_STATEMENTS_OF_TRANSACTIONS: Final = (b"SAVEPOINT", b"ROLLBACK", b"XA ")
_MICROSECONDS_MAX: Final = 999999
_UTF8: Final = 33
# MySQL 8.0.5 has these modes no more and refuses them.
_REMOVED_SQL_MODES: Final = 0x1003FF00


class WrittenSettings:
    """Gives the SET statements that a statement needs and the session lacks.

    Args:
        flavor: Flavor of the SET statements.
        short_form: True if connection ids are hidden, as they differ from run to run.
        rewrite_databases: Names to use instead of those in the log.
    """

    def __init__(
        self, flavor: Flavor, *, short_form: bool, rewrite_databases: Mapping[str, str]
    ) -> None:
        self._flavor = flavor
        self._short_form = short_form
        self._rewrite_databases = rewrite_databases
        self._known: dict[str, object] = {"AUTO_INCREMENT": (0, 0)}
        self._database = ""
        self._thread_id: int | None = None
        self._flags2: int | None = None
        is_mariadb = flavor is Flavor.MARIADB
        self._flags2_names: tuple[_Switch, ...] = _FLAGS2_MARIADB if is_mariadb else _FLAGS2

    def set_writer(self, server_version: str) -> None:
        """Note the server of the file: variables that it did not log are left alone."""
        match = _VERSION.match(server_version)
        if match is None or self._flavor is Flavor.MYSQL:
            return
        major, minor, patch = map(int, match.groups())
        unknown = set()
        if (major, minor, patch) < (10, 5, 2):
            unknown.add("sql_if_exists")
        if (major, minor) < (10, 10) and patch < _DEFAULTS_SINCE.get((major, minor), patch + 1):
            unknown.add("explicit_defaults_for_timestamp")
        self._flags2_names = tuple(entry for entry in _FLAGS2_MARIADB if entry[0] not in unknown)

    def changed(self, name: str, value: object) -> bool:
        """Remember a value; whether it is a new one."""
        is_new = name not in self._known or self._known[name] != value
        self._known[name] = value
        return is_new

    def rewritten_use(self, event: Event, body: QueryEvent) -> Iterator[str]:
        """Return MariaDB's `use` of a renamed database, which it prints before the event."""
        database = body.database.decode("utf-8", "surrogateescape")
        is_new = database != self._database and database in self._rewrite_databases
        if is_new and not event.header.flags & HeaderFlag.SUPPRESS_USE:
            self._database = database
            yield f"use {quote(self._rewrite_databases[database])}{END}"

    def set_query(
        self, event: Event, body: QueryEvent, *, tells_thread: bool = True
    ) -> Iterator[str]:
        """The context of a statement: its database, its time, and its status variables."""
        yield from self._use(event, body)
        values = {var.name: var.value for var in decode_status_vars(body.status_vars)}
        yield f"SET TIMESTAMP={event.header.timestamp}{self._fraction(values)}{END}"
        is_specific = event.header.flags & HeaderFlag.THREAD_SPECIFIC
        is_other = self._thread_id is None or (is_specific and self._thread_id != body.thread_id)
        if tells_thread and is_other:
            self._thread_id = body.thread_id
            shown = _SHORT_FORM_THREAD if self._short_form else body.thread_id
            yield f"SET @@session.pseudo_thread_id={shown}{END}"
        yield from self._set_flags2(values.get("FLAGS2"))
        for name, default, text in _VARIABLES:
            value = values.get(name, default)
            if value is not None and (name in _REPEATED or self.changed(name, value)):
                yield text(value, self._flavor)

    def set_user_var(self, body: UserVarEvent) -> Iterator[str]:
        """A user variable; for MySQL in UTF-8, in which its name is.

        Raises:
            CodecError: If the value's bytes are not what its type says.
        """
        from binlane.log.codec.variables import UserVarType  # noqa: PLC0415  # as the event was

        name = quote(body.name.decode("utf-8", "surrogateescape"))
        text = f"SET @{name}:={_user_value(body, self._flavor)}{END}"
        charset = self._known.get("CHARSET")
        if self._flavor is Flavor.MARIADB or charset is None:
            yield text
            return
        numbers = {UserVarType.REAL, UserVarType.INT, UserVarType.DECIMAL}
        has_charset = body.type_code in numbers
        connection = body.collation_id if has_charset else _UTF8
        yield _set_charset((_UTF8, connection, _UTF8), self._flavor)
        yield text
        yield _set_charset(charset, self._flavor)

    def _use(self, event: Event, body: QueryEvent) -> Iterator[str]:
        database = body.database.decode("utf-8", "surrogateescape")
        if event.header.flags & HeaderFlag.SUPPRESS_USE:
            if not is_of_transaction(body.query):
                self._database = ""
        elif database != self._database:
            self._database = database
            if database:
                yield f"use {quote(self._rewrite_databases.get(database, database))}{END}"

    def _fraction(self, values: Mapping[str, object]) -> str:
        if self._flavor is Flavor.MYSQL:
            micros = values.get("MICROSECONDS")
            return "" if micros is None else f".{micros:06d}"
        micros = values.get("HRNOW")
        has_some = isinstance(micros, int) and 0 < micros <= _MICROSECONDS_MAX
        return f".{micros:06d}" if has_some else ""

    def _set_flags2(self, flags2: object) -> Iterator[str]:
        if not isinstance(flags2, int):
            return
        changed = ~0 if self._flags2 is None else self._flags2 ^ flags2
        self._flags2 = flags2
        settings = [
            f"@@session.{name}={int(bool(flags2 >> bit & 1) != is_inverted)}"
            for name, bit, is_inverted in self._flags2_names
            if changed >> bit & 1
        ]
        if settings:
            yield f"SET {', '.join(settings)}{END}"


def is_of_transaction(query: bytes) -> bool:
    """True if a statement begins or ends a transaction or a part of one."""
    is_whole = query.upper() in {b"BEGIN", b"COMMIT"}
    return is_whole or query.upper().startswith(_STATEMENTS_OF_TRANSACTIONS)


def _set_sql_mode(value: Any, flavor: Flavor) -> str:
    has_removed = flavor is Flavor.MYSQL and value & _REMOVED_SQL_MODES
    mask = f"/*!80005 &~{_REMOVED_SQL_MODES:#x}*/" if has_removed else ""
    return f"SET @@session.sql_mode={value}{mask}{END}"


def _set_increment(value: Any, _: Flavor) -> str:
    increment, offset = value
    return (
        f"SET @@session.auto_increment_increment={increment}, "
        f"@@session.auto_increment_offset={offset}{END}"
    )


def _set_charset(value: Any, flavor: Flavor) -> str:
    client, connection, server = value
    name = charset_of(client)
    # The client itself must know where statements end.
    head = "" if name is None else f"/*!\\C {name} */{END}\n"
    shown = client if name is None or flavor is Flavor.MYSQL else name
    return (
        f"{head}SET @@session.character_set_client={shown},"
        f"@@session.collation_connection={connection},@@session.collation_server={server}{END}"
    )


def _set_time_zone(value: Any, _: Flavor) -> str:
    quoted = str(value).replace("'", "''")
    return f"SET @@session.time_zone='{quoted}'{END}"


def _set_time_names(value: Any, _: Flavor) -> str:
    return f"SET @@session.lc_time_names={value}{END}"


def _set_collation(value: Any, _: Flavor) -> str:
    return f"SET @@session.collation_database={value or 'DEFAULT'}{END}"


def _set_utf8mb4(value: Any, _: Flavor) -> str:
    return f"/*!80011 SET @@session.default_collation_for_utf8mb4={value}*/{END}"


def _set_collations(value: Any, flavor: Flavor) -> str:
    pairs = ",".join(
        f"{charset_of(default)}={collation_name(chosen, flavor)}" for default, chosen in value
    )
    return f"SET @@session.character_set_collations='{pairs}'{END}"


def _set_defaults(value: Any, _: Flavor) -> str:
    return f"SET @@session.explicit_defaults_for_timestamp={value}{END}"


def _set_primary_key(value: Any, _: Flavor) -> str:
    return f"/*!80013 SET @@session.sql_require_primary_key={value}*/{END}"


def _set_encryption(value: Any, _: Flavor) -> str:
    return f"/*!80016 SET @@session.default_table_encryption={value}*/{END}"


_SetText = Callable[[Any, Flavor], str]
# Variables in the order of the tools: name, value for a missing one, text. None leaves a
# missing one alone.
_VARIABLES: Final[tuple[tuple[str, object, _SetText], ...]] = (
    ("SQL_MODE", None, _set_sql_mode),
    ("AUTO_INCREMENT", (1, 1), _set_increment),
    ("CHARSET", None, _set_charset),
    ("CHARACTER_SET_COLLATIONS", None, _set_collations),
    ("TIME_ZONE", None, _set_time_zone),
    ("LC_TIME_NAMES", 0, _set_time_names),
    ("CHARSET_DATABASE", 0, _set_collation),
    ("DEFAULT_COLLATION_FOR_UTF8MB4", None, _set_utf8mb4),
    ("EXPLICIT_DEFAULTS_FOR_TIMESTAMP", None, _set_defaults),
    ("SQL_REQUIRE_PRIMARY_KEY", None, _set_primary_key),
    ("DEFAULT_TABLE_ENCRYPTION", None, _set_encryption),
)
# Set wherever they are written; the others only on change.
_REPEATED: Final = frozenset(
    {
        "CHARACTER_SET_COLLATIONS",
        "EXPLICIT_DEFAULTS_FOR_TIMESTAMP",
        "SQL_REQUIRE_PRIMARY_KEY",
        "DEFAULT_TABLE_ENCRYPTION",
    }
)


def _user_value(body: UserVarEvent, flavor: Flavor) -> str:
    from binlane.log.codec.variables import UserVarType  # noqa: PLC0415  # as the event was

    if body.is_null or body.type_code is None:
        return "NULL"
    if body.type_code == UserVarType.INT:
        return str(int.from_bytes(body.value, "little", signed=not (body.flags or 0) & 1))
    if body.type_code == UserVarType.REAL:
        return _real(decode_double(Reader(body.value)))
    if body.type_code == UserVarType.DECIMAL:
        reader = Reader(body.value)
        precision, scale = reader.u8(), reader.u8()
        return format(decimal_from_bytes(reader.rest(), precision, scale), "f")
    if body.type_code != UserVarType.STRING:
        raise CodecError(f"user variables of type {body.type_code} are unknown")
    charset = charset_of(body.collation_id) or "binary"
    collation = collation_name(body.collation_id, flavor) or "binary"
    return f"_{charset} {_hex(body.value, flavor)} COLLATE {quote(collation)}"


def _hex(value: bytes, flavor: Flavor) -> str:
    digits = value.hex().upper()
    if not digits:
        return '""'
    return f"X'{digits}'" if flavor is Flavor.MARIADB else f"0x{digits}"


def _real(value: float) -> str:
    short = f"{value:.14g}"
    if float(short) == value:
        return short
    number = repr(value)
    return number if "e" in number else f"{number}e0"
