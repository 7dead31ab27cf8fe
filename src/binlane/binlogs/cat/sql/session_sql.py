"""The settings of the session that runs printed SQL; pure.

Row statements and logged statements need different settings; each is set only when it changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from binlane.binlogs.cat.sql.sql_literals import ROW_SQL_MODE, double_literal, quoted
from binlane.log.codec.buffer import Reader
from binlane.log.codec.charsets import charset_of, text_decoder
from binlane.log.codec.client_text import is_alike
from binlane.log.codec.event import Event
from binlane.log.codec.numbers import decimal_from_bytes, decode_double
from binlane.log.codec.query import QueryEvent
from binlane.log.codec.statement_text import statement_text
from binlane.log.codec.status_vars import decode_status_vars
from binlane.log.codec.types import Flavor, HeaderFlag, RowsFlag
from binlane.log.codec.variables import UserVarEvent, UserVarType
from binlane.names import quote
from binlane.statements.sql.lexis import is_same_in_utf8

_UTF8MB4_COLLATION: Final = "45"
# Bits of FLAGS2: variable, bit, whether the bit switches it off, whether only MariaDB has it.
_FLAGS2: Final = (
    ("foreign_key_checks", 26, True, False),
    ("unique_checks", 27, True, False),
    ("sql_auto_is_null", 14, False, False),
    ("check_constraint_checks", 15, True, True),
)
# Status variables whose number is the variable's value, where a log of the flavor has them.
_PLAIN: Final = (
    ("SQL_MODE", "sql_mode"),
    ("LC_TIME_NAMES", "lc_time_names"),
    ("CHARSET_DATABASE", "collation_database"),
    ("EXPLICIT_DEFAULTS_FOR_TIMESTAMP", "explicit_defaults_for_timestamp"),
    ("DEFAULT_COLLATION_FOR_UTF8MB4", "default_collation_for_utf8mb4"),
    ("SQL_REQUIRE_PRIMARY_KEY", "sql_require_primary_key"),
    ("DEFAULT_TABLE_ENCRYPTION", "default_table_encryption"),
)
# A statement whose context lacks one of these ran with the default.
_DEFAULTS: Final[Mapping[str, str]] = {"lc_time_names": "0", "collation_database": "DEFAULT"}


class SqlSession:
    """Gives the SET and USE statements that the next statement needs and the session lacks."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}
        self._database = ""

    def for_rows(self, event: Event, flags: int, *, flavor: Flavor) -> Iterator[str]:
        """The settings that row statements need.

        Args:
            event: The rows event, for its time.
            flags: The event's flags, bits of `RowsFlag`.
            flavor: Flavor of the log's server.
        """
        settings = {
            "timestamp": str(event.header.timestamp),
            "time_zone": quoted("+00:00"),
            "sql_mode": quoted(ROW_SQL_MODE),
            "character_set_client": "utf8mb4",
            "collation_connection": _UTF8MB4_COLLATION,
            "foreign_key_checks": _off(flags & RowsFlag.NO_FOREIGN_KEY_CHECKS),
            "unique_checks": _off(flags & RowsFlag.RELAXED_UNIQUE_CHECKS),
        }
        if flavor is Flavor.MARIADB:
            settings["check_constraint_checks"] = _off(flags & RowsFlag.NO_CHECK_CONSTRAINT_CHECKS)
        yield from self._set(settings)

    def for_statement(self, event: Event, body: QueryEvent, *, flavor: Flavor) -> Iterator[str]:
        """The default database and the context that a statement ran in.

        Raises:
            CodecError: If its status variables are damaged.
        """
        database = body.database.decode("utf-8", "surrogateescape")
        is_free = event.header.flags & HeaderFlag.SUPPRESS_USE
        if database and database != self._database and not is_free:
            self._database = database
            if not is_alike(database):
                # The statement before may have been in a set of its own.
                yield from self._set({"character_set_client": "utf8mb4"})
            yield f"USE {quote(database)}"
        values = {var.name: var.value for var in decode_status_vars(body.status_vars)}
        micros = values.get("HRNOW", values.get("MICROSECONDS"))
        seconds = event.header.timestamp
        settings = {"timestamp": f"{seconds}.{micros:06d}" if micros else str(seconds)}
        if event.header.flags & HeaderFlag.THREAD_SPECIFIC:
            # Temporary tables of two sessions may have one name.
            settings["pseudo_thread_id"] = str(body.thread_id)
        yield from self._set(settings | _status_settings(values, body, flavor))

    def _set(self, settings: Mapping[str, str]) -> Iterator[str]:
        changed = [
            f"{name} = {value}"
            for name, value in settings.items()
            if self._known.get(name) != value
        ]
        self._known.update(settings)
        if changed:
            yield "SET " + ", ".join(changed)


def printed_text(body: QueryEvent) -> tuple[str, bool]:
    """A statement as text to print, and whether it is in its client's own bytes.

    A statement that is text in its session's character set is printed as such, in UTF-8. In one
    that is not, as with binary literals, or that would be another one in UTF-8, bytes that are no
    UTF-8 are kept as lone surrogates.
    """
    values = {var.name: var.value for var in decode_status_vars(body.status_vars)}
    client = _client_charset(values)
    decode = text_decoder(client or "utf8mb4")
    if decode is not None:
        try:
            text = decode(body.query)
        except UnicodeDecodeError:
            pass
        else:
            if is_same_in_utf8(statement_text(body), client or ""):
                return text, False
    return body.query.decode("utf-8", "surrogateescape"), True


def user_value(body: UserVarEvent) -> str:
    """The value of a user variable as an expression."""
    if body.is_null or body.type_code is None:
        return "NULL"
    if body.type_code == UserVarType.INT:
        return str(int.from_bytes(body.value, "little", signed=not (body.flags or 0) & 1))
    if body.type_code == UserVarType.REAL:
        return double_literal(decode_double(Reader(body.value)))
    if body.type_code == UserVarType.DECIMAL:
        precision, scale = Reader(body.value).take(2)
        return format(decimal_from_bytes(body.value[2:], precision, scale), "f")
    return f"_{charset_of(body.collation_id) or 'binary'} x'{body.value.hex()}'"


def _client_charset(values: Mapping[str, object]) -> str | None:
    charsets = values.get("CHARSET")
    return charset_of(charsets[0]) if isinstance(charsets, tuple) else None


def _status_settings(
    values: Mapping[str, object], body: QueryEvent, flavor: Flavor
) -> dict[str, str]:
    settings: dict[str, str] = {}
    flags2 = values.get("FLAGS2")
    if isinstance(flags2, int):
        settings |= {
            name: str(int(bool(flags2 >> bit & 1) != inverted))
            for name, bit, inverted, is_mariadb in _FLAGS2
            if flavor is Flavor.MARIADB or not is_mariadb
        }
    increment = values.get("AUTO_INCREMENT", (1, 1))
    assert isinstance(increment, tuple), "two numbers by its layout"
    settings["auto_increment_increment"] = str(increment[0])
    settings["auto_increment_offset"] = str(increment[1])
    charsets = values.get("CHARSET")
    if isinstance(charsets, tuple):
        _, is_raw = printed_text(body)
        settings["character_set_client"] = str(charsets[0]) if is_raw else "utf8mb4"
        settings["collation_connection"] = str(charsets[1])
        settings["collation_server"] = str(charsets[2])
    if "TIME_ZONE" in values:
        settings["time_zone"] = quoted(str(values["TIME_ZONE"]))
    plain = {name: str(values[code]) for code, name in _PLAIN if code in values}
    return settings | dict(_DEFAULTS) | plain


def _off(flag: int) -> str:
    return "0" if flag else "1"
