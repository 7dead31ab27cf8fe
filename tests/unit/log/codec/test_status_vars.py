from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from binlane.errors import CodecError, TruncatedError
from binlane.log.codec.query import QueryEvent
from binlane.log.codec.status_vars import (
    StatusVar,
    client_collation,
    decode_status_vars,
    encode_status_vars,
    query_text,
    sql_mode,
)


def query(status_vars: bytes, text: bytes) -> QueryEvent:
    return QueryEvent(
        thread_id=1,
        execution_time=0,
        error_code=0,
        status_vars=status_vars,
        database=b"shop",
        query=text,
    )


ALL = [
    ("0000000004", StatusVar(0, "FLAGS2", 1 << 26)),
    ("010000205400000000", StatusVar(1, "SQL_MODE", 0x54200000)),
    ("020373746400", StatusVar(2, "CATALOG", "std")),
    ("030a000300", StatusVar(3, "AUTO_INCREMENT", (10, 3))),
    ("042d002d000800", StatusVar(4, "CHARSET", (45, 45, 8))),
    ("05062b30323a3030", StatusVar(5, "TIME_ZONE", "+02:00")),
    ("0603737464", StatusVar(6, "CATALOG_NZ", "std")),
    ("070400", StatusVar(7, "LC_TIME_NAMES", 4)),
    ("080009", StatusVar(8, "CHARSET_DATABASE", 2304)),
    ("090300000000000000", StatusVar(9, "TABLE_MAP_FOR_UPDATE", 3)),
    ("0a01020000", StatusVar(10, "MASTER_DATA_WRITTEN", 513)),
    ("0b04726f6f740125", StatusVar(11, "INVOKER", ("root", "%"))),
    ("0c0261006200", StatusVar(12, "UPDATED_DB_NAMES", ("a", "b"))),
    ("0cfe", StatusVar(12, "UPDATED_DB_NAMES", None)),
    ("0d40e201", StatusVar(13, "MICROSECONDS", 123456)),
    ("0e0100000000000000", StatusVar(14, "COMMIT_TS", 1)),
    ("0f01000000000000000200000000000000", StatusVar(15, "COMMIT_TS2", (1, 2))),
    ("1001", StatusVar(16, "EXPLICIT_DEFAULTS_FOR_TIMESTAMP", 1)),
    ("110500000000000000", StatusVar(17, "DDL_LOGGED_WITH_XID", 5)),
    ("12ff00", StatusVar(18, "DEFAULT_COLLATION_FOR_UTF8MB4", 255)),
    ("1301", StatusVar(19, "SQL_REQUIRE_PRIMARY_KEY", 1)),
    ("1400", StatusVar(20, "DEFAULT_TABLE_ENCRYPTION", 0)),
    ("1501", StatusVar(21, "ENABLE_CASCADE_TRIGGERS", 1)),
    ("8040e201", StatusVar(128, "HRNOW", 123456)),
    ("810600000000000000", StatusVar(129, "XID", 6)),
    ("8202", StatusVar(130, "GTID_FLAGS3", (2,))),
    ("82040700000000000000", StatusVar(130, "GTID_FLAGS3", (4, 7))),
    ("8302210000082d000009", StatusVar(131, "CHARACTER_SET_COLLATIONS", ((33, 2048), (45, 2304)))),
]


@pytest.mark.parametrize("data, variable", ALL)
def test_every_variable_is_read_and_written(data: str, variable: StatusVar) -> None:
    encoded = bytes.fromhex(data)
    assert decode_status_vars(encoded) == (variable,)
    assert encode_status_vars([variable]) == encoded
    for length in range(1, len(encoded)):
        with pytest.raises(TruncatedError):
            decode_status_vars(encoded[:length])


def test_an_unknown_code_takes_everything_to_the_end() -> None:
    data = bytes.fromhex("1300c8010203")
    variables = decode_status_vars(data)
    assert variables[1:] == (StatusVar(200, "UNKNOWN", b"\1\2\3"),)
    assert encode_status_vars(variables) == data


def test_impossible_values_are_damage() -> None:
    with pytest.raises(CodecError, match="17 databases; 16 have room"):
        decode_status_vars(b"\x0c\x11")
    with pytest.raises(CodecError, match="no NUL stands after a text"):
        decode_status_vars(b"\x02\x01ax")


CP1251, SJIS, BINARY = b"\4\x33\0\x2d\0\x08\0", b"\4\x0d\0\x2d\0\x08\0", b"\4\x3f\0\x2d\0\x08\0"


@pytest.mark.parametrize(
    "status_vars, data, text",
    [
        (CP1251, "Привет".encode("cp1251"), "Привет"),
        (SJIS, "日本語表".encode("shift_jis"), "日本語表"),
        (b"", "é".encode(), "é"),
        (BINARY, "é".encode(), "é"),
        (b"", b"\xe9", "\udce9"),
        # What is not of the session's character set may still be UTF-8.
        (b"\4\x0b\0\x2d\0\x08\0", "é".encode(), "é"),
    ],
)
def test_a_statement_is_read_in_its_sessions_character_set(
    status_vars: bytes, data: bytes, text: str
) -> None:
    assert query_text(query(status_vars, data)) == text


def test_the_sql_mode_is_told_where_it_is_written() -> None:
    assert (
        sql_mode(query(bytes.fromhex("00000000000104000000000000 00".replace(" ", ""))[:14], b""))
        == 4
    )
    assert sql_mode(query(b"", b"")) is None


def test_what_many_contexts_have_in_common_is_read_once_and_is_the_same() -> None:
    chance = random.Random(97)
    texts = [bytes.fromhex(data) for data, _ in ALL]
    modes = [b"\1" + chance.randbytes(8) for _ in range(12)]
    charsets = [b"\4" + chance.randbytes(6) for _ in range(4)]
    for number in range(1500):
        context = b"".join(chance.sample(texts, chance.randint(0, 2)))
        parts = [chance.choice(modes), chance.choice(charsets)]
        chance.shuffle(parts)
        context += b"".join(parts[: chance.choice((1, 2, 2, 2, 2))])
        context += b"".join(chance.sample(texts, chance.randint(0, 3)))
        if number % 5 == 0:
            context = context[: chance.randint(0, len(context))]
        event = query(context, b"")
        assert _told(sql_mode, event) == _first(context, "SQL_MODE"), context.hex()
        expected = _first(context, "CHARSET")
        if isinstance(expected, tuple):
            expected = expected[0]
        assert _told(client_collation, event) == expected, context.hex()


def _told(tell: Callable[[QueryEvent], int | None], event: QueryEvent) -> object:
    try:
        return tell(event)
    except CodecError:
        return CodecError


def _first(context: bytes, name: str) -> object:
    """The first value of a name, by reading ever more of a context; the error of damage before it."""
    for length in range(len(context) + 1):
        try:
            found = decode_status_vars(context[:length])
        except CodecError:
            continue
        values = [one.value for one in found if one.name == name]
        if values:
            return values[0]
    try:
        decode_status_vars(context)
    except CodecError:
        return CodecError
    return None
