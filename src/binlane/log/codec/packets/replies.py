"""Replies of one packet: OK, ERR, EOF.

Their layouts depend on what the connection has agreed on: with SESSION_TRACK an OK packet carries
session state, with DEPRECATE_EOF an OK packet that begins with 0xFE ends a result set. Its text has
its length before it whatever was agreed on; where there is neither text nor state, nothing stands
there.

Source: MariaDB 10.11 sql/protocol.cc, net_send_ok, net_send_eof, net_send_error_packet; MySQL 9.7
sends the same bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct
from typing import Final, Self

from binlane.errors import HINT_ERRNO, CodecError, StatementError
from binlane.log.codec.buffer import Reader, encode_packed_int
from binlane.log.codec.packets.flags import Capability, ServerStatus
from binlane.log.codec.packets.framing import bytes_of, encode_packed_bytes, packed_bytes, text_of

OK_MARK: Final = 0x00
EOF_MARK: Final = 0xFE
ERR_MARK: Final = 0xFF
ERROR_MESSAGE_MAX: Final = 512
CLIENT_ERRNOS: Final = (range(2000, 3000), range(5000, 6000))
"""Numbers that the libraries of MySQL and MariaDB give their own errors."""
_EOF_LENGTH_MAX: Final = 8
_SQLSTATE_LENGTH: Final = 5
_STATUS: Final = Struct("<HH")


@dataclass(frozen=True, slots=True, kw_only=True)
class OkPacket:
    """A command succeeded, or, with DEPRECATE_EOF, a result set ended.

    Attributes:
        affected_rows: The number of rows that were changed.
        insert_id: The last AUTO_INCREMENT value given.
        status: The status of the session.
        warnings: The number of warnings that SHOW WARNINGS has.
        info: A text for people, mostly empty.
        session_state: The session tracker's entries, undecoded; with SESSION_STATE_CHANGED.
        ends_rows: True if it stands in the place of an EOF packet.
    """

    affected_rows: int = 0
    insert_id: int = 0
    status: ServerStatus = ServerStatus.AUTOCOMMIT
    warnings: int = 0
    info: bytes = b""
    session_state: bytes = b""
    ends_rows: bool = False

    @classmethod
    def decode(cls, payload: bytes) -> Self:
        """Read a packet that begins with 0x00 or 0xFE."""
        reader = Reader(payload)
        mark = reader.u8()
        if mark not in (OK_MARK, EOF_MARK):
            raise CodecError(f"0x{mark:02X} starts no OK packet")
        affected_rows, insert_id = reader.packed_int(), reader.packed_int()
        status, warnings = reader.unpack(_STATUS)
        info = packed_bytes(reader) if reader.remaining else b""
        tells_state = status & ServerStatus.SESSION_STATE_CHANGED and reader.remaining
        session_state = _state(reader) if tells_state else b""
        reader.finish()
        return cls(
            affected_rows=affected_rows,
            insert_id=insert_id,
            status=ServerStatus(status),
            warnings=warnings,
            info=info,
            session_state=session_state,
            ends_rows=mark == EOF_MARK,
        )

    def encode(self, capabilities: Capability) -> bytes:
        """The payload; session state is left out where the client did not ask for it."""
        tracks = Capability.SESSION_TRACK in capabilities
        status = self.status if tracks else self.status & ~ServerStatus.SESSION_STATE_CHANGED
        parts = [
            bytes((EOF_MARK if self.ends_rows else OK_MARK,)),
            encode_packed_int(self.affected_rows),
            encode_packed_int(self.insert_id),
            _STATUS.pack(status, self.warnings),
        ]
        tells_state = status & ServerStatus.SESSION_STATE_CHANGED
        if self.info or tells_state:
            parts.append(encode_packed_bytes(self.info))
        if tells_state:
            parts.append(encode_packed_bytes(self.session_state))
        return b"".join(parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrPacket:
    """A command, a login or a dump failed.

    Attributes:
        message: The text of the error.
        sqlstate: Five characters; None where the server refuses before the login.
    """

    errno: int
    message: str
    sqlstate: str | None = "HY000"

    @classmethod
    def decode(cls, payload: bytes) -> Self:
        """Read a packet that begins with 0xFF."""
        reader = Reader(payload)
        mark = reader.u8()
        if mark != ERR_MARK:
            raise CodecError(f"0x{mark:02X} starts no ERR packet")
        errno, text = reader.u16(), reader.rest()
        sqlstate = None
        if text.startswith(b"#") and len(text) > _SQLSTATE_LENGTH:
            sqlstate, text = text_of(text[1 : _SQLSTATE_LENGTH + 1]), text[_SQLSTATE_LENGTH + 1 :]
        return cls(errno=errno, message=text_of(text), sqlstate=sqlstate)

    def encode(self) -> bytes:
        """Return the payload."""
        state = b"" if self.sqlstate is None else b"#" + bytes_of(self.sqlstate)
        head = bytes((ERR_MARK,)) + self.errno.to_bytes(2, "little")
        return head + state + bytes_of(self.message)


@dataclass(frozen=True, slots=True, kw_only=True)
class EofPacket:
    """The end of column definitions, of rows, or of a dump that does not wait.

    Attributes:
        warnings: The number of warnings that SHOW WARNINGS has.
        status: The status of the session.
    """

    warnings: int = 0
    status: ServerStatus = ServerStatus.AUTOCOMMIT

    @classmethod
    def decode(cls, payload: bytes) -> Self:
        """Read a packet that begins with 0xFE and is shorter than 9 bytes."""
        reader = Reader(payload)
        mark = reader.u8()
        if mark != EOF_MARK:
            raise CodecError(f"0x{mark:02X} starts no EOF packet")
        warnings, status = reader.unpack(_STATUS)
        reader.finish()
        return cls(warnings=warnings, status=ServerStatus(status))

    def encode(self) -> bytes:
        """Exact inverse."""
        return bytes((EOF_MARK,)) + _STATUS.pack(self.warnings, self.status)


def _state(reader: Reader) -> bytes:
    """Return session state; if it is sent, it is never empty.

    MariaDB writes the byte of its length in the character set of the default database: in UTF-16,
    UTF-32 and UCS-2 NULs stand before it, from which clients take it to be empty. Measured.
    """
    state = packed_bytes(reader)
    while not state and reader.remaining:
        state = packed_bytes(reader)
    return state


def is_ok(payload: bytes) -> bool:
    """True if a reply is OK, where no rows are expected."""
    return payload[:1] == bytes((OK_MARK,))


def is_error(payload: bytes) -> bool:
    """True if a reply is ERR."""
    return payload[:1] == bytes((ERR_MARK,))


def is_eof(payload: bytes) -> bool:
    """True if a reply is an EOF packet of either length that clients without DEPRECATE_EOF get."""
    return payload[:1] == bytes((EOF_MARK,)) and len(payload) <= _EOF_LENGTH_MAX


def error_packet(error: StatementError) -> bytes:
    """The ERR payload that a refused statement is answered with; a hint stands behind its text."""
    text = f"{error.message} (hint: {error.hint})" if error.hint else error.message
    message = bytes_of(text)[:ERROR_MESSAGE_MAX].decode("utf-8", "ignore")
    # A peer may have given it, and clients take one of their own for a malformed packet.
    is_clients = any(error.errno in numbers for numbers in CLIENT_ERRNOS)
    errno = HINT_ERRNO if is_clients else error.errno
    return ErrPacket(errno=errno, message=message, sqlstate=error.sqlstate).encode()
