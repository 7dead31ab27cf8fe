"""The bytes of an event as `--hexdump` shows them, in the form of either tool."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from binlane.log.codec.format import HEADER_LENGTH

_WIDTH: Final = 16
_HALF: Final = 8
# Parts of the common header: timestamp, type, server id, length, next position, flags.
_HEADER_PARTS: Final = ((0, 4), (4, 5), (5, 9), (9, 13), (13, 17), (17, 19))


def mariadb_dump(data: bytes, position: int) -> Iterator[str]:
    """Return comment lines; the event's own line goes on behind the last.

    Args:
        data: Bytes of the whole event.
        position: Position of the event's first byte.
    """
    yield "# Position"
    yield "#           |Timestamp   |Type |Master ID   |Size        |Master Pos  |Flags"
    timestamp, code, server, size, end, flags = _header(data)
    yield f"# {position:8x}  |{timestamp} |{code}   |{server} |{size} |{end} |{flags}"
    yield "#"
    for at, part in _parts(data):
        left, right = part[:_HALF].hex(" "), part[_HALF:].hex(" ")
        text = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in part)
        yield f"# {position + at:8x}  {left:<23}  {right:<23}  |{text}|"
    if len(data) > HEADER_LENGTH:
        yield "#"
    yield "# Event: "


def mysql_dump(data: bytes, position: int) -> Iterator[str]:
    """Return comment lines as mysqlbinlog prints them; the event's own line follows the last."""
    yield "# Position  Timestamp   Type   Source ID        Size      Source Pos    Flags "
    yield f"# {position:08x} {'   '.join(_header(data))}"
    for at, part in _parts(data):
        left, right = part[:_HALF].hex(" "), part[_HALF:].hex(" ")
        characters = (chr(byte) if byte < 128 else "." for byte in part)
        text = "".join(character if character.isalnum() else "." for character in characters)
        yield f"# {position + at:08x} {left:<23}  {right:<23} |{text}|"
    yield "# "


def _header(data: bytes) -> list[str]:
    return [data[start:end].hex(" ") for start, end in _HEADER_PARTS]


def _parts(data: bytes) -> Iterator[tuple[int, bytes]]:
    for at in range(HEADER_LENGTH, len(data), _WIDTH):
        yield at, data[at : at + _WIDTH]
