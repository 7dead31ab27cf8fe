"""Statements with passwords: binlogs have their hashes, whatever stands around them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace

import pytest

from binlane.binlogs.routing.password_hashing import statement_with_hashes, with_hashes
from binlane.log.codec.buffer import Reader
from binlane.log.codec.compression import compress_record
from binlane.log.codec.format import Format
from binlane.log.codec.password_hashes import (
    caching_sha2_hash,
    ed25519_hash,
    native_hash,
    sha256_hash,
)
from binlane.log.codec.query import QueryCompressedEvent, QueryEvent
from binlane.log.codec.status_vars import StatusVar, encode_status_vars
from binlane.log.codec.types import Flavor
from binlane.log.grouping.event_group import EventGroup
from binlane.statements.sql.logged_statements import may_hold_password
from tests.groups import query, source_format

X, Y = native_hash(b"x"), native_hash(b"y")
ESCAPED = native_hash(b"x'y\n\\%")
BACKSLASH = native_hash(b"x\\")
SALT = b"0123456789abcdefghijklmnopqrstuv"
MARIADB: Mapping[str, str] = {
    "CREATE USER a IDENTIFIED BY 'x'": f"CREATE USER a IDENTIFIED BY PASSWORD '{X}'",
    "create or replace user a@b identified\nby 'x', c IDENTIFIED /* why */ BY \"y\" REQUIRE SSL": (
        f"create or replace user a@b identified\nby PASSWORD '{X}', c IDENTIFIED /* why */ BY"
        f" PASSWORD '{Y}' REQUIRE SSL"
    ),
    "ALTER USER IF EXISTS a IDENTIFIED BY 'x''y\\n\\%'": (
        f"ALTER USER IF EXISTS a IDENTIFIED BY PASSWORD '{ESCAPED}'"
    ),
    "GRANT SELECT ON a.* TO a IDENTIFIED BY 'x', b IDENTIFIED BY PASSWORD '*0'": (
        f"GRANT SELECT ON a.* TO a IDENTIFIED BY PASSWORD '{X}', b IDENTIFIED BY PASSWORD '*0'"
    ),
    "CREATE USER a IDENTIFIED VIA ed25519 USING PASSWORD('x') OR `mysql_native_password` AS"
    " PASSWORD ( 'y' ) OR unix_socket": (
        f"CREATE USER a IDENTIFIED VIA ed25519 USING '{ed25519_hash(b'x')}' OR"
        f" `mysql_native_password` AS '{Y}' OR unix_socket"
    ),
    "/*M!100100 CREATE USER a IDENTIFIED BY 'x' */": (
        f"/*M!100100 CREATE USER a IDENTIFIED BY PASSWORD '{X}' */"
    ),
    "SET STATEMENT sql_mode='' FOR CREATE USER a IDENTIFIED BY 'x'": (
        f"SET STATEMENT sql_mode='' FOR CREATE USER a IDENTIFIED BY PASSWORD '{X}'"
    ),
    "CREATE EVENT e ON SCHEDULE EVERY 1 DAY DO CREATE USER a IDENTIFIED BY 'x'": (
        f"CREATE EVENT e ON SCHEDULE EVERY 1 DAY DO CREATE USER a IDENTIFIED BY PASSWORD '{X}'"
    ),
    "CREATE PROCEDURE p() BEGIN PREPARE s FROM \"CREATE USER `a\\\\` IDENTIFIED BY 'x'\";"
    " EXECUTE IMMEDIATE 'ALTER USER a IDENTIFIED BY ''y'''; END": (
        f"CREATE PROCEDURE p() BEGIN PREPARE s FROM 'CREATE USER `a\\\\` IDENTIFIED BY PASSWORD"
        f" ''{X}''';"
        f" EXECUTE IMMEDIATE 'ALTER USER a IDENTIFIED BY PASSWORD ''{Y}'''; END"
    ),
}
MYSQL: Mapping[str, str] = {
    "CREATE PROCEDURE p() CREATE USER a IDENTIFIED BY 'x', b IDENTIFIED WITH sha256_password BY 'y'": (
        "CREATE PROCEDURE p() CREATE USER a IDENTIFIED WITH 'caching_sha2_password' AS"
        f" '{caching_sha2_hash(b'x', SALT)}', b IDENTIFIED WITH sha256_password AS"
        f" '{sha256_hash(b'y', SALT)}'"
    ),
}
AS_THEY_ARE = (
    *("DROP USER identified", "CREATE USER a", "CREATE USER a IDENTIFIED BY ''"),
    "CREATE USER a IDENTIFIED VIA somebodys USING PASSWORD('x')",
    "CREATE USER a IDENTIFIED VIA pam USING 'x'",
    "CREATE USER a IDENTIFIED BY PASSWORD '*0'",
    "CREATE TABLE t (a INT COMMENT 'IDENTIFIED BY ''x''')",
    "CREATE PROCEDURE p() LOAD XML INFILE 'f' INTO TABLE t ROWS IDENTIFIED BY '<x>'",
    "CREATE PROCEDURE p() INSERT INTO help VALUES ('CREATE USER a IDENTIFIED BY ''x''')",
    "CREATE USER a IDENTIFIED BY 'x",
)


def hashed(text: bytes, flavor: Flavor, **changes: object) -> bytes:
    body = query(text).body
    assert isinstance(body, QueryEvent)
    body = replace(body, **changes)  # type: ignore[arg-type]  # as the caller has it
    return statement_with_hashes(body, flavor, lambda _: SALT).query


@pytest.mark.parametrize(("text", "expected"), MARIADB.items())
def test_of_mariadb(text: str, expected: str) -> None:
    assert may_hold_password(text.encode())
    assert hashed(text.encode(), Flavor.MARIADB).decode() == expected


@pytest.mark.parametrize(("text", "expected"), MYSQL.items())
def test_bodies_of_mysql(text: str, expected: str) -> None:
    assert hashed(text.encode(), Flavor.MYSQL).decode() == expected


@pytest.mark.parametrize("text", AS_THEY_ARE)
def test_what_has_no_password_stays(text: str) -> None:
    assert hashed(text.encode(), Flavor.MARIADB).decode() == text


def test_an_old_password_is_named_beside_a_new_one_only() -> None:
    text = "CREATE PROCEDURE p() ALTER USER a IDENTIFIED BY 'x' REPLACE 'y'"
    assert hashed(text.encode(), Flavor.MYSQL).decode() == text


def test_a_password_is_of_the_bytes_of_its_client() -> None:
    latin1 = encode_status_vars([StatusVar(4, "CHARSET", (8, 8, 8))])
    text = "CREATE USER a IDENTIFIED BY 'pä'".encode("latin-1")
    expected = f"CREATE USER a IDENTIFIED BY PASSWORD '{native_hash('pä'.encode('latin-1'))}'"
    assert hashed(text, Flavor.MARIADB, status_vars=latin1).decode("latin-1") == expected


def test_quotes_and_escapes_are_those_of_the_session() -> None:
    ansi = encode_status_vars([StatusVar(1, "SQL_MODE", 0x4 | 0x100000)])
    text = b"CREATE USER \"a\" IDENTIFIED BY 'x\\'"
    expected = f"CREATE USER \"a\" IDENTIFIED BY PASSWORD '{BACKSLASH}'"
    assert hashed(text, Flavor.MARIADB, status_vars=ansi).decode() == expected


def test_statements_on_rows_are_not_looked_at() -> None:
    assert not may_hold_password(b"INSERT INTO t VALUES ('IDENTIFIED BY ''x''')")


def test_a_group_gets_the_same_hashes_whenever_it_is_read() -> None:
    each = b" IDENTIFIED VIA parsec USING PASSWORD('x')"
    text = b"CREATE USER a" + each + b", b" + each
    group = EventGroup(gtid=None, events=(query(b"BEGIN"), query(text)), file="b.1")
    format_: Format = source_format().format
    first, second = with_hashes(group, format_), with_hashes(group, format_)
    assert first == second
    body = first.events[1].body
    assert isinstance(body, QueryEvent)
    one, other = (part.split(b"'")[1] for part in body.query.split(b"USING ")[1:])
    assert one.startswith(b"P0:")
    assert one != other  # each account has a salt of its own
    assert with_hashes(first, format_) == first


def test_a_compressed_statement_stays_one() -> None:
    body = query(b"CREATE USER a IDENTIFIED BY 'x'").body
    assert isinstance(body, QueryEvent)
    packed = QueryCompressedEvent(
        **{each.name: getattr(body, each.name) for each in fields(body)}
        | {"record": compress_record(body.query)}
    )
    event = replace(query(b""), body=packed)
    found = with_hashes(EventGroup(gtid=None, events=(event,), file="b.1"), source_format().format)
    kept = found.events[0].body
    assert isinstance(kept, QueryCompressedEvent)
    again = QueryCompressedEvent.decode(
        Reader(kept.encode(source_format().format)), source_format().format
    )
    assert again.query.decode() == f"CREATE USER a IDENTIFIED BY PASSWORD '{X}'"
