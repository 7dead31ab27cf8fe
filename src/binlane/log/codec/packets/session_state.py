"""The session tracker's entries in an OK packet.

Source: MariaDB 10.11 sql/session_tracker.cc; MySQL 9.7 sql/session_tracker.cc.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final, Self

from binlane.log.codec.buffer import Reader, encode_packed_int
from binlane.log.codec.packets.framing import bytes_of, encode_packed_bytes, packed_bytes, text_of


class StateType(IntEnum):
    """The kind of an entry; other kinds are skipped."""

    SYSTEM_VARIABLES = 0
    SCHEMA = 1
    GTIDS = 3


_GTIDS_AS_TEXT: Final = b"\0"
_LAST_GTID: Final = "last_gtid"


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionState:
    """Changes of a session.

    Attributes:
        variables: Values of system variables, by name.
        database: The default database; None if that is not told.
        gtids: The GTIDs of the transactions that ended (MySQL), as text.
    """

    variables: Mapping[str, str] = field(default_factory=dict)
    database: str | None = None
    gtids: str = ""

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """Read the entries of an OK packet's `session_state`.

        Raises:
            CodecError: If they are none.
        """
        reader = Reader(data)
        variables: dict[str, str] = {}
        database: str | None = None
        gtids = ""
        while reader.remaining:
            kind = reader.u8()
            end = reader.packed_int()
            end += reader.offset
            if kind == StateType.SYSTEM_VARIABLES:
                while reader.offset < end:
                    name = text_of(packed_bytes(reader))
                    variables[name] = text_of(packed_bytes(reader))
            elif kind == StateType.SCHEMA:
                database = text_of(packed_bytes(reader))
            elif kind == StateType.GTIDS:
                reader.u8()
                gtids = text_of(packed_bytes(reader))
            else:
                reader.take(end - reader.offset)
        return cls(variables=variables, database=database, gtids=gtids)

    def encode(self) -> bytes:
        """The entries, one for each variable."""
        entries = [
            (
                StateType.SYSTEM_VARIABLES,
                encode_packed_bytes(bytes_of(name)) + encode_packed_bytes(bytes_of(value)),
            )
            for name, value in self.variables.items()
        ]
        if self.database is not None:
            entries.append((StateType.SCHEMA, encode_packed_bytes(bytes_of(self.database))))
        if self.gtids:
            entries.append(
                (StateType.GTIDS, _GTIDS_AS_TEXT + encode_packed_bytes(bytes_of(self.gtids)))
            )
        return b"".join(
            encode_packed_int(kind) + encode_packed_bytes(entry) for kind, entry in entries
        )


def without_gtids(data: bytes) -> bytes:
    """Return the entries of an OK packet's `session_state` without its GTIDs.

    MariaDB tells them as a system variable, `last_gtid`, MySQL in an entry of their own.

    Raises:
        CodecError: If they are no entries.
    """
    reader = Reader(data)
    kept: list[bytes] = []
    while reader.remaining:
        kind = reader.u8()
        entry = packed_bytes(reader)
        if kind == StateType.GTIDS:
            continue
        if kind == StateType.SYSTEM_VARIABLES:
            entry = _without_last_gtid(entry)
            if not entry:
                continue
        kept += (encode_packed_int(kind), encode_packed_bytes(entry))
    return b"".join(kept)


def _without_last_gtid(entry: bytes) -> bytes:
    reader = Reader(entry)
    kept: list[bytes] = []
    while reader.remaining:
        name, value = packed_bytes(reader), packed_bytes(reader)
        if text_of(name) != _LAST_GTID:
            kept += (encode_packed_bytes(name), encode_packed_bytes(value))
    return b"".join(kept)
