"""What annotate and Rows_query texts name, by shape."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from binlane.binlogs.routing.texts import TEXT_MAX, names_in, shape_of


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        (b"INSERT INTO t VALUES (1, 'x')", b"INSERT INTO t VALUES (0, '')"),
        (b"UPDATE t2 SET a='it''s -- no' WHERE b=12", b"UPDATE t2 SET a='' WHERE b=0"),
        (b"SELECT * FROM 2fa WHERE a=2", b"SELECT * FROM 2fa WHERE a=0"),
        (b"SELECT * FROM db.2fa, `x'1`", b"SELECT * FROM db.2fa, `x'1`"),
        (b"SELECT 1.5, 0x1F, 1e5, .5, 1.5.2", b"SELECT 0, 0x1F, 1e5, .5, 1.5.2"),
        (b"SELECT 'a\\'b', 1", b"SELECT 'a\\'b', 1"),
        (b"SELECT 'a\\\\', 1", b"SELECT '', 0"),
        (b"SELECT '{\\\"a\\\": 1}', 1", b"SELECT '', 0"),
        (b'SELECT \'{"a": 1}\', `"`, 1', b"SELECT '', `\"`, 0"),
        (b"SELECT 'a'', 1", b"SELECT 'a'', 1"),
        (b'SELECT "x", 1', b'SELECT "x", 1'),
        (b"SELECT 'open", b"SELECT 'open"),
    ],
)
def test_literals_are_emptied(text: bytes, shape: bytes) -> None:
    assert shape_of(text) == shape


def test_what_a_text_names() -> None:
    names = names_in(b"UPDATE b, shop.a SET b.x = 1, a.y = now() WHERE c = 'crm.person'")
    assert names.is_known
    assert {table.plain for table in names.tables} == {"shop.a"}
    assert names.unqualified == {"b"}
    assert names_in(b"INSERT INTO a VALUES ('--')").is_known
    assert not names_in(b"INSERT INTO a VALUES (1) -- '").is_known
    assert not names_in(b"INSERT INTO a VALUES (" + b"1" * TEXT_MAX + b")").is_known


@given(st.binary(max_size=60), st.binary(max_size=60))
def test_a_comment_sign_outside_of_strings_is_never_lost(before: bytes, after: bytes) -> None:
    plain = before.replace(b"'", b"").replace(b"`", b"")
    assert b"/*" in shape_of(plain + b"/*" + after)


@pytest.mark.parametrize(
    "text",
    [
        # The default database may be one outside of the scope, with a table of that name.
        b"INSERT INTO shop.a SELECT * FROM a WHERE c = 1",
        b"INSERT INTO a SELECT * FROM b",
        b"INSERT INTO shop.a VALUES (secret_of(1))",
        b"INSERT INTO shop.a VALUES (`concat`(1))",
        b"INSERT INTO shop.a VALUES (crm.secret_of(1))",
    ],
)
def test_what_may_be_in_another_database_is_not_known(text: bytes) -> None:
    assert not names_in(text).is_known
