"""Every byte and pair of bytes of every character set, decoded as a MariaDB server converts it.

And what every byte is to the lexers of both servers.
"""

from __future__ import annotations

import pymysql
import pytest

from binlane.live.provision.private_server import PrivateServer
from binlane.log.codec.charsets import charset_of, text_decoder
from binlane.log.codec.client_text import read_text
from binlane.statements.sql.lexis import lexed_as
from binlane.statements.sql.reading import read
from binlane.statements.sql.servers import Dialect
from tests.servers import connect, execute

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


@pytest.mark.parametrize("charset", SINGLE_BYTE.split())
@pytest.mark.parametrize("flavor", ["mariadb", "mysql"])
def test_what_bytes_are_to_the_lexer(
    request: pytest.FixtureRequest, flavor: str, charset: str
) -> None:
    server: PrivateServer = request.getfixturevalue(f"{flavor}_server")
    dialect = Dialect(flavor=flavor, charset=lexed_as(charset))
    differing = []
    with connect(server, charset="utf8mb4") as connection, connection.cursor() as cursor:
        cursor.execute(f"SET character_set_client = {charset}")
        for byte in (*b"[]{}^~\\|@\x7f", *range(0x80, 0x100)):
            one = bytes((byte,))
            for statement in (b"SELECT%b1", b"SELECT 1 --%b )", b"SELECT 1 AS a%bc"):
                text = read_text(statement % one, charset)
                facts = None if text is None else read(text, database="", dialect=dialect)
                is_read = facts is not None and facts.error is None
                try:
                    # Bytes are sent as they are.
                    cursor.execute(statement % one)  # type: ignore[call-overload]
                    cursor.fetchall()
                    is_run = True
                except (pymysql.MySQLError, UnicodeDecodeError):
                    is_run = False
                # Who reads more than a server runs says of it what does not happen.
                is_space = statement != b"SELECT 1 AS a%bc"
                if text is not None and (is_run > is_read or (is_space and is_run < is_read)):
                    differing.append((statement % one, is_run))
    assert differing == []
