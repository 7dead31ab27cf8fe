from __future__ import annotations

import pytest

from binlane.errors import CodecError, UnsupportedError
from binlane.log.codec.buffer import encode_packed_int
from binlane.log.codec.charsets import charset_of
from binlane.log.codec.columns import Column
from binlane.log.codec.optional_metadata import MetadataType, PrimaryKeyPart
from binlane.log.codec.rows import TableMapEvent
from binlane.log.codec.table_metadata import primary_key, table_columns
from binlane.log.codec.types import ColumnType, Flavor
from tests.build import table_map

T = ColumnType
M = MetadataType


def tlv(*entries: tuple[int, bytes]) -> bytes:
    return b"".join(
        bytes((code,)) + encode_packed_int(len(value)) + value for code, value in entries
    )


def columns(described: TableMapEvent, flavor: Flavor = Flavor.MARIADB) -> tuple[Column, ...]:
    return table_columns(described, flavor=flavor)


def test_types_come_with_their_metadata() -> None:
    described = table_map(
        *(
            T.LONG,
            T.VARCHAR,
            T.NEWDECIMAL,
            T.BIT,
            T.STRING,
            T.STRING,
            T.STRING,
            T.BLOB,
            T.DATETIME2,
        ),
        metadata=bytes.fromhex("2c010a020301fe0af701f8020206"),
    )
    assert [(column.type, column.metadata) for column in columns(described)] == [
        (T.LONG, 0),
        (T.VARCHAR, 300),
        (T.NEWDECIMAL, 0x0A02),
        (T.BIT, 0x0103),
        (T.STRING, 0xFE0A),
        (T.ENUM, 0xF701),
        (T.SET, 0xF802),
        (T.BLOB, 2),
        (T.DATETIME2, 6),
    ]
    assert all(column.name is None and column.is_nullable for column in columns(described))


def test_metadata_must_be_as_long_as_the_types_say() -> None:
    with pytest.raises(CodecError, match="2 bytes expected"):
        columns(table_map(T.VARCHAR, metadata=b"\1"))
    with pytest.raises(CodecError, match="1 bytes left over"):
        columns(table_map(T.LONG, metadata=b"\1"))


@pytest.mark.parametrize("code", [21, 200, 243, T.TYPED_ARRAY])
def test_unknown_types_are_refused(code: int) -> None:
    with pytest.raises(UnsupportedError, match="column 2 is"):
        columns(table_map(T.LONG, code))


def test_signs_are_told_for_numbers_and_years() -> None:
    described = table_map(
        *(T.LONG, T.BIT, T.TINY, T.YEAR),
        metadata=b"\1\0",
        optional_metadata=tlv((M.SIGNEDNESS, b"\xa0")),
    )
    assert [column.is_unsigned for column in columns(described)] == [True, None, False, True]


def test_a_default_character_set_has_exceptions() -> None:
    described = table_map(
        *(T.VARCHAR, T.LONG, T.BLOB, T.VARCHAR),
        metadata=bytes.fromhex("1400021400"),
        optional_metadata=tlv((M.DEFAULT_CHARSET, bytes((45, 1, 63)))),
    )
    assert [column.collation_id for column in columns(described)] == [45, None, 63, 45]


def test_each_column_may_have_its_character_set() -> None:
    described = table_map(
        *(T.VARCHAR, T.VARCHAR),
        metadata=bytes.fromhex("14001400"),
        optional_metadata=tlv((M.COLUMN_CHARSET, b"\x08\xfc\x00\x09")),
    )
    assert [column.collation_id for column in columns(described)] == [8, 2304]


def test_mariadb_counts_geometry_among_the_character_columns_and_mysql_does_not() -> None:
    facts = {
        Flavor.MARIADB: (bytes((63, 45)), [63, 45]),
        Flavor.MYSQL: (bytes((45,)), [None, 45]),
    }
    for flavor, (ids, expected) in facts.items():
        described = table_map(
            *(T.GEOMETRY, T.VARCHAR),
            metadata=b"\4\x14\0",
            optional_metadata=tlv((M.COLUMN_CHARSET, ids), (M.GEOMETRY_TYPE, b"\1")),
        )
        made = columns(described, flavor)
        assert [column.collation_id for column in made] == expected
        assert made[0].geometry_type == 1


def test_members_are_decoded_with_their_columns_character_set() -> None:
    described = table_map(
        *(T.STRING, T.STRING, T.STRING),
        metadata=bytes.fromhex("f701f801f701"),
        optional_metadata=tlv(
            (M.ENUM_AND_SET_COLUMN_CHARSET, bytes((8, 45, 63))),
            (M.ENUM_STR_VALUE, b"\2\1a\1\xe7" + b"\1\1\xff"),
            (M.SET_STR_VALUE, b"\2\2\xc3\xa7\1\xe7"),
        ),
    )
    assert [column.members for column in columns(described)] == [
        ("a", "ç"),
        ("ç", "\\xe7"),
        ("\\xff",),
    ]


def test_names_visibility_and_dimensions() -> None:
    described = table_map(
        *(T.LONG, T.VECTOR),
        metadata=b"\4",
        optional_metadata=tlv(
            (M.COLUMN_NAME, b"\2id" + "\2è".encode()),
            (M.COLUMN_VISIBILITY, b"\x40"),
            (M.VECTOR_DIMENSIONALITY, b"\xfc\x00\x08"),
            (99, b"of a later version"),
        ),
    )
    first, second = columns(described)
    assert (first.name, first.is_visible, first.dimensions) == ("id", False, None)
    assert (second.name, second.is_visible, second.dimensions) == ("è", True, 2048)


@pytest.mark.parametrize(
    "entry, parts",
    [
        ((M.SIMPLE_PRIMARY_KEY, b"\1\0"), [(1, 0), (0, 0)]),
        ((M.PRIMARY_KEY_WITH_PREFIX, b"\1\x0a\0\0"), [(1, 10), (0, 0)]),
    ],
)
def test_a_primary_key_keeps_its_order(
    entry: tuple[int, bytes], parts: list[tuple[int, int]]
) -> None:
    described = table_map(T.LONG, T.LONG, T.LONG, optional_metadata=tlv(entry))
    assert primary_key(described) == tuple(
        PrimaryKeyPart(index=index, prefix_length=length) for index, length in parts
    )
    assert [column.in_primary_key for column in columns(described)] == [True, True, False]
    assert primary_key(table_map(T.LONG)) == ()


@pytest.mark.parametrize(
    "entries, message",
    [
        ([(M.SIMPLE_PRIMARY_KEY, b"\2")], "the primary key names column 3 of 2"),
        ([(M.SIGNEDNESS, b"\0\0")], "SIGNEDNESS has 2 bytes for 1 columns"),
        ([(M.COLUMN_NAME, b"\1a")], "COLUMN_NAME tells of 1 columns, the table has 2"),
        ([(M.COLUMN_CHARSET, b"\x2d\x2d")], "COLUMN_CHARSET tells of 2 columns, the table has 1"),
        ([(M.DEFAULT_CHARSET, b"\x2d\1\x08")], "DEFAULT_CHARSET names column 2 of 1"),
        ([(M.ENUM_STR_VALUE, b"\1\1a")], "ENUM_STR_VALUE tells of 1 columns, the table has 0"),
        ([(M.GEOMETRY_TYPE, b"\1")], "GEOMETRY_TYPE tells of 1 columns, the table has 0"),
        ([(M.SIGNEDNESS, b"\0"), (M.SIGNEDNESS, b"\0")], "optional metadata 1 stands twice"),
    ],
)
def test_metadata_that_contradicts_the_columns_is_damage(
    entries: list[tuple[int, bytes]], message: str
) -> None:
    described = table_map(T.LONG, T.VARCHAR, metadata=b"\x14\0", optional_metadata=tlv(*entries))
    with pytest.raises(CodecError, match=message):
        columns(described)


# As MySQL 9.7.4 wrote them: column types, their metadata, the optional metadata; and the character
# sets that its mysqlbinlog tells of the columns.
VECTORS = {
    "one charset a column": (
        "030ff2fcfe",
        "14000402f701",
        (
            "0101000305083ffcff000d0103040e026964046e6f74650176017401650a03fcff000605020161016208"
            "01000c01f8"
        ),
        [None, "latin1", None, "utf8mb4", "utf8mb4"],
    ),
    "a default of bytes": (
        "f2fefcf2ff",
        "04fe0c020404",
        "02053f01fcff000701000d020205040a017601630162017701670c01f8",
        [None, "utf8mb4", "binary", None, None],
    ),
    "the vector first": (
        "f2fefefe",
        "04fe03fe0cfe03",
        "03063f08fcff000b0d0102040801760163016401650c01f0",
        [None, "latin1", "utf8mb4", "ascii"],
    ),
}


@pytest.mark.parametrize("name", VECTORS)
def test_mysql_counts_vectors_among_the_character_columns(name: str) -> None:
    types, metadata, optional, charsets = VECTORS[name]
    found = table_columns(
        table_map(
            *bytes.fromhex(types),
            metadata=bytes.fromhex(metadata),
            optional_metadata=bytes.fromhex(optional),
        ),
        flavor=Flavor.MYSQL,
    )
    assert [
        None if column.collation_id is None else charset_of(column.collation_id) for column in found
    ] == charsets
