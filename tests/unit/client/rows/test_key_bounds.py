"""Ranges of a key as conditions, and definitions as they are compared."""

from __future__ import annotations

from binlane.client.rows.key_bounds import between, bound_statement
from binlane.client.rows.source_table import source_table, without_counter
from binlane.log.codec.types import Flavor
from binlane.names import TableName

_CREATE = (
    "CREATE TABLE `t` (`w` varchar(9) CHARACTER SET latin1 NOT NULL, `e` enum('b','a') NOT NULL,"
    " `d` date NOT NULL, `b` binary(2) NOT NULL, PRIMARY KEY (`w`,`e`,`d`,`b`))"
    " ENGINE=InnoDB AUTO_INCREMENT=7 DEFAULT CHARSET=utf8mb4"
)


def test_bounds_are_exact_whatever_the_type() -> None:
    key = source_table(TableName("s", "t"), _CREATE, flavor=Flavor.MARIADB).key
    cells = (b"\xe4'", b"2", b"0000-00-00", b"\x00\xff")
    bound = tuple(part.literal(cell) for part, cell in zip(key, cells, strict=True))
    assert bound == ("_latin1 0xe427", "2", "'0000-00-00'", "0x00ff")
    first = key[:2]
    assert between(first, None, None) == ""
    assert between(first, bound[:2], None) == (
        " WHERE (`w` >= _latin1 0xe427 AND ((`w` > _latin1 0xe427)"
        " OR (`w` = _latin1 0xe427 AND (`e` + 0) > 2)))"
    )
    assert between(key[1:2], ("1",), ("2",)) == " WHERE (`e` + 0) > 1 AND (`e` + 0) <= 2"
    assert bound_statement("`s`.`t`", key[1:2], None, 10) == (
        "SELECT (`e` + 0) FROM `s`.`t` ORDER BY (`e` + 0) LIMIT 1 OFFSET 9"
    )


def test_a_definition_is_the_same_when_its_counter_grew() -> None:
    assert without_counter(_CREATE) == _CREATE.replace(" AUTO_INCREMENT=7", "")
    assert without_counter("CREATE TABLE `t` (a int)") == "CREATE TABLE `t` (a int)"
