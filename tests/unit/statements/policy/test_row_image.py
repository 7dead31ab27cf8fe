"""Columns of row images, for the shapes of tables of seed 004."""

from __future__ import annotations

import pytest

from binlane.log.codec.types import Flavor
from binlane.names import TableName
from binlane.statements.policy.row_image import Images, images, primary_key_equivalent
from binlane.statements.sql.facts import RowChange
from binlane.statements.sql.schema import Key, Table
from binlane.statements.sql.servers import RowImage
from binlane.statements.sql.table_definitions import TableColumn, TableDefinition

COLUMNS = (
    TableColumn(name="a", type_name="INT", is_nullable=False),
    TableColumn(name="b", type_name="BLOB"),
    TableColumn(name="c", type_name="INT", is_nullable=False),
    TableColumn(name="d", type_name="VARCHAR"),
)


def table(*keys: Key, auto_increment: str | None = None) -> Table:
    return Table(
        name=TableName("d", "t"),
        definition=TableDefinition(columns=COLUMNS),
        engine="INNODB",
        keys=keys,
        auto_increment=auto_increment,
    )


PRIMARY = Key(name="PRIMARY", columns=("c",), is_unique=True)
NOT_NULL = Key(name="u", columns=("c", "a"), is_unique=True)
NULLABLE = Key(name="n", columns=("d",), is_unique=True)


@pytest.mark.parametrize(
    "keys, expected",
    [
        pytest.param((PRIMARY, NOT_NULL), ("c",), marks=pytest.mark.rule("004:PKE-primary")),
        pytest.param((NULLABLE, NOT_NULL), ("a", "c"), marks=pytest.mark.rule("004:PKE-unique")),
        pytest.param((NULLABLE,), ("a", "b", "c", "d"), marks=pytest.mark.rule("004:PKE-all")),
        ((), ("a", "b", "c", "d")),
    ],
)
def test_primary_key_equivalent(keys: tuple[Key, ...], expected: tuple[str, ...]) -> None:
    assert primary_key_equivalent(table(*keys)) == expected


ALL = ("a", "b", "c", "d")


@pytest.mark.rule("004:image-write-minimal")
@pytest.mark.rule("004:image-update-minimal")
@pytest.mark.rule("004:image-delete-minimal")
@pytest.mark.rule("004:image-write-noblob")
@pytest.mark.rule("004:image-update-noblob")
@pytest.mark.rule("004:image-delete-noblob")
@pytest.mark.rule("004:image-write-full")
@pytest.mark.rule("004:image-update-full")
@pytest.mark.rule("004:image-delete-full")
@pytest.mark.parametrize(
    "image, insert, update, delete",
    [
        (RowImage.MINIMAL, ("a", "d"), (("c",), ("d",)), ("c",)),
        (RowImage.NOBLOB, ("a", "c", "d"), (("a", "c", "d"), ("a", "c", "d")), ("a", "c", "d")),
        (RowImage.FULL, ALL, (ALL, ALL), ALL),
        (RowImage.FULL_NODUP, ALL, (ALL, ("d",)), ALL),
    ],
)
def test_images(
    image: RowImage,
    insert: tuple[str, ...],
    update: tuple[tuple[str, ...], tuple[str, ...]],
    delete: tuple[str, ...],
) -> None:
    shape = table(PRIMARY, auto_increment="a")
    assert images(shape, RowChange.INSERT, image, ["d"], flavor=Flavor.MYSQL) == Images(
        None, insert
    )
    assert images(shape, RowChange.UPDATE, image, ["d"], flavor=Flavor.MYSQL) == Images(*update)
    assert images(shape, RowChange.DELETE, image, flavor=Flavor.MYSQL) == Images(delete, None)


def test_a_blob_that_is_set_or_is_the_key_is_in_the_image() -> None:
    shape = table()
    found = images(shape, RowChange.UPDATE, RowImage.NOBLOB, ["b"], flavor=Flavor.MYSQL)
    assert found == Images(ALL, ALL)


@pytest.mark.parametrize(
    ("flavor", "kept"), [(Flavor.MARIADB, ("a", "g")), (Flavor.MYSQL, ("a", "j", "g"))]
)
def test_json_is_a_blob_of_mariadb_and_geometry_is_none(
    flavor: Flavor, kept: tuple[str, ...]
) -> None:
    columns = (
        TableColumn(name="a", type_name="INT", is_nullable=False),
        TableColumn(name="j", type_name="JSON"),
        TableColumn(name="g", type_name="POINT"),
        TableColumn(name="t", type_name="TEXT"),
    )
    shape = Table(
        name=TableName("d", "t"),
        definition=TableDefinition(columns=columns),
        engine="INNODB",
        keys=(Key(name="PRIMARY", columns=("a",), is_unique=True),),
    )
    found = images(shape, RowChange.DELETE, RowImage.NOBLOB, flavor=flavor)
    assert found == Images(kept, None)
