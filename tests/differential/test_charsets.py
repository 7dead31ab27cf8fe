"""Every byte and pair of bytes of every character set, decoded as a MariaDB server converts it."""

from __future__ import annotations

import pytest

from binlane.codec.charsets import charset_of, text_decoder
from binlane.service.private_server import PrivateServer
from tests.servers import execute

SINGLE_BYTE = (
    "armscii8 ascii cp1250 cp1251 cp1256 cp1257 cp850 cp852 cp866 dec8 geostd8 greek hebrew hp8 "
    "keybcs2 koi8r koi8u latin1 latin2 latin5 latin7 macce macroman swe7 tis620"
)
DOUBLE_BYTE = "big5 cp932 eucjpms euckr gb2312 gbk sjis ujis"
# Characters that the server knows and Python has no codec for: those values stay bytes.
UNKNOWN_MAX = {"big5": 7, "eucjpms": 1023, "ujis": 940}
REPLACEMENT = "\ufffd"


def converted(
    server: PrivateServer, charset: str, first: int, last: int
) -> dict[bytes, str | None]:
    """What the server makes of codes of equal length; None where they mean nothing."""
    length = 1 if last < 256 else 2
    code = f"UNHEX(LPAD(HEX(seq), {2 * length}, '0'))"
    rows = execute(
        server,
        "CREATE DATABASE IF NOT EXISTS charsets",
        "USE charsets",
        f"SELECT seq, HEX(CONVERT(CONVERT({code} USING {charset}) USING utf32))"
        f" FROM seq_{first}_to_{last}",
    )
    found: dict[bytes, str | None] = {}
    for number, characters in rows:
        data = number.to_bytes(length, "big")
        text = bytes.fromhex(characters or "").decode("utf-32-be")
        is_nothing = not text or "?" in text.replace("?", "", data.count(b"?"))
        found[data] = None if is_nothing or REPLACEMENT in text else text
    return found


def decoded(charset: str, data: bytes) -> str | None:
    decode = text_decoder(charset)
    assert decode is not None
    try:
        return decode(data)
    except UnicodeDecodeError:
        return None


@pytest.mark.parametrize("charset", SINGLE_BYTE.split())
def test_single_bytes(mariadb_server: PrivateServer, charset: str) -> None:
    for data, text in converted(mariadb_server, charset, 0, 255).items():
        # Where the server has nothing Python may know a character that came later.
        assert text is None or decoded(charset, data) == text, data


@pytest.mark.parametrize("charset", DOUBLE_BYTE.split())
def test_double_bytes(mariadb_server: PrivateServer, charset: str) -> None:
    unknown = 0
    for data, text in converted(mariadb_server, charset, 0x8000, 0xFFFF).items():
        if text is None or len(text) != 1:
            continue
        mine = decoded(charset, data)
        unknown += mine is None
        assert mine in {text, None}, data
    assert unknown == UNKNOWN_MAX.get(charset, 0)


def test_every_collation_of_the_server_has_its_character_set(mariadb_server: PrivateServer) -> None:
    rows = execute(
        mariadb_server,
        "SELECT id, character_set_name"
        " FROM information_schema.collation_character_set_applicability",
    )
    assert len(rows) > 500
    assert {number: charset_of(number) for number, _ in rows} == dict(rows)
