"""What a client that runs the text has been told so far: session variables, set only on change."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from binlane.codec.buffer import Reader
from binlane.codec.charsets import charset_of
from binlane.codec.event import Event
from binlane.codec.numbers import decimal_from_bytes, decode_double
from binlane.codec.query import QueryEvent
from binlane.codec.status_vars import decode_status_vars
from binlane.codec.types import HeaderFlag
from binlane.codec.variables import IntvarEvent, IntvarKind, UserVarEvent, UserVarType
from binlane.names import quote
from binlane.positions import Gtid

_END: Final = "/*!*/;"
# Bits of the FLAGS2 status variable: name, bit, whether the bit switches the variable off.
_FLAGS2: Final = (
    ("foreign_key_checks", 26, True),
    ("sql_auto_is_null", 14, False),
    ("unique_checks", 27, True),
    ("autocommit", 19, True),
    ("check_constraint_checks", 15, True),
    ("explicit_defaults_for_timestamp", 24, False),
)


class SessionState:
    """Gives the SET statements that a statement needs and the session lacks."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}
        self._database = ""

    def _set(self, name: str, value: str) -> Iterator[str]:
        if self._known.get(name) != value:
            self._known[name] = value
            yield value

    def set_gtid(self, gtid: Gtid, *, skips_parallel: bool) -> Iterator[str]:
        """What makes the next group carry its GTID."""
        skips = int(skips_parallel)
        for name, version, value in (
            ("skip_parallel_replication", 100101, skips),
            ("gtid_domain_id", 100001, gtid.domain_id),
            ("server_id", 100001, gtid.server_id),
        ):
            yield from self._set(name, f"/*M!{version} SET @@session.{name}={value}*/{_END}")
        yield f"/*M!100001 SET @@session.gtid_seq_no={gtid.sequence}*/{_END}"

    def set_timestamp(self, event: Event) -> Iterator[str]:
        """The time that an event happened at."""
        yield from self._set("timestamp", f"SET TIMESTAMP={event.header.timestamp}{_END}")

    def set_query(self, event: Event, body: QueryEvent) -> Iterator[str]:
        """The context of a statement, from its status variables."""
        database = body.database.decode("utf-8", "surrogateescape")
        is_free = event.header.flags & HeaderFlag.SUPPRESS_USE
        if database and database != self._database and not is_free:
            self._database = database
            yield f"use {quote(database)}{_END}"
        values = {var.name: var.value for var in decode_status_vars(body.status_vars)}
        micros = values.get("HRNOW", values.get("MICROSECONDS"))
        seconds = f"{event.header.timestamp}.{micros:06d}" if micros else event.header.timestamp
        yield from self._set("timestamp", f"SET TIMESTAMP={seconds}{_END}")
        yield from self._set("thread", f"SET @@session.pseudo_thread_id={body.thread_id}{_END}")
        yield from self._set_status(values)

    def _set_status(self, values: dict[str, object]) -> Iterator[str]:
        flags2, charset = values.get("FLAGS2"), values.get("CHARSET")
        if isinstance(flags2, int):
            settings = ", ".join(
                f"@@session.{name}={int(bool(flags2 >> bit & 1) != inverted)}"
                for name, bit, inverted in _FLAGS2
            )
            yield from self._set("flags2", f"SET {settings}{_END}")
        if "SQL_MODE" in values:
            yield from self._set("mode", f"SET @@session.sql_mode={values['SQL_MODE']}{_END}")
        increment = values.get("AUTO_INCREMENT", (1, 1))
        assert isinstance(increment, tuple), "two numbers by its layout"
        yield from self._set(
            "increment",
            f"SET @@session.auto_increment_increment={increment[0]}, "
            f"@@session.auto_increment_offset={increment[1]}{_END}",
        )
        if isinstance(charset, tuple):
            client = charset_of(charset[0])
            if client is not None:
                # For the client itself, which must find the ends of statements.
                yield from self._set("client", f"/*!\\C {client} */{_END}")
            yield from self._set(
                "charset",
                f"SET @@session.character_set_client={charset[0]},"
                f"@@session.collation_connection={charset[1]},"
                f"@@session.collation_server={charset[2]}{_END}",
            )
        if "TIME_ZONE" in values:
            yield from self._set("zone", f"SET @@session.time_zone='{values['TIME_ZONE']}'{_END}")
        names = values.get("LC_TIME_NAMES", 0)
        yield from self._set("lc", f"SET @@session.lc_time_names={names}{_END}")
        collation = values.get("CHARSET_DATABASE", "DEFAULT")
        yield from self._set("collation", f"SET @@session.collation_database={collation}{_END}")

    def set_intvar(self, body: IntvarEvent) -> Iterator[str]:
        """The value of LAST_INSERT_ID() or INSERT_ID."""
        name = "LAST_INSERT_ID" if body.kind == IntvarKind.LAST_INSERT_ID else "INSERT_ID"
        yield f"SET {name}={body.value}{_END}"

    def set_user_var(self, body: UserVarEvent) -> str:
        """A user variable's value, with all its bytes."""
        name = quote(body.name.decode("utf-8", "surrogateescape"))
        return f"SET @{name}:={_user_value(body)}{_END}"


def _user_value(body: UserVarEvent) -> str:
    if body.is_null or body.type_code is None:
        return "NULL"
    if body.type_code == UserVarType.INT:
        return str(int.from_bytes(body.value, "little", signed=not (body.flags or 0) & 1))
    if body.type_code == UserVarType.REAL:
        number = repr(decode_double(Reader(body.value)))
        # Without an exponent it would be a DECIMAL.
        return number if "e" in number else f"{number}e0"
    if body.type_code == UserVarType.DECIMAL:
        precision, scale = body.value[0], body.value[1]
        return format(decimal_from_bytes(body.value[2:], precision, scale), "f")
    charset = charset_of(body.collation_id) or "binary"
    return f"_{charset} X'{body.value.hex()}'"
