"""Rules by databases and tables, how they are written, and in which order they hold."""

from __future__ import annotations

import pytest

from binlane.binlogs.filters.rules import WildTable
from binlane.binlogs.filters.terms import name_parts, parse_terms, read_names
from binlane.errors import ConfigError
from binlane.names import TableName


def includes(table: str, **given: list[str]) -> bool:
    return parse_terms(given).rules.includes(TableName(*table.split(".", 1)))


def test_databases_come_first_and_those_to_ignore_are_not_asked_beside_those_to_do() -> None:
    assert includes("shop.t", do_db=["shop"])
    assert not includes("crm.t", do_db=["shop"], do_table=["crm.t"])
    assert includes("shop.t", do_db=["shop"], ignore_db=["shop"])
    assert not includes("shop.t", ignore_db=["shop"], do_table=["shop.t"])
    assert not includes("shop.u", do_db=["shop"], do_table=["shop.t"])


def test_the_first_rule_that_names_a_table_decides() -> None:
    assert includes("shop.t", do_table=["shop.t"], ignore_table=["shop.t"])
    assert not includes("shop.t", ignore_table=["shop.t"], wild_do_table=["shop.%"])
    assert includes("shop.t", wild_do_table=["shop.%"], wild_ignore_table=["shop.t"])
    assert not includes("shop.t", wild_ignore_table=["%.t"])
    assert includes("shop.t", ignore_table=["shop.u"])
    assert not includes("shop.t", do_table=["shop.u"], ignore_table=["shop.v"])


@pytest.mark.parametrize(
    ("pattern", "name", "is_meant"),
    [
        ("shop.%", "shop.t", True),
        ("shop.%", "shop.", True),
        ("s%", "shop.t", None),
        ("s_op.t", "shop.t", True),
        (r"s\_op.t", "shop.t", False),
        (r"s\_op.t", "s_op.t", True),
        ("%.t", "a.b.t", True),
        ("shop.T", "shop.t", False),
        ("a.b+c", "a.bbc", False),
    ],
)
def test_patterns_are_those_of_like(pattern: str, name: str, is_meant: bool | None) -> None:  # noqa: FBT001  # of parametrize
    if is_meant is None:
        with pytest.raises(ValueError, match=r"no pattern DATABASE\.TABLE"):
            WildTable(pattern)
    else:
        assert WildTable(pattern).matches(name) is is_meant


def test_a_database_as_such_is_named_by_no_single_table() -> None:
    def database(**given: list[str]) -> bool:
        return parse_terms(given).rules.includes_database("shop")

    assert database(do_db=["shop"])
    assert database(ignore_table=["shop.t"])
    assert not database(do_table=["shop.t"])
    assert database(wild_do_table=["shop.%"])
    assert not database(wild_do_table=["shop.t%"])
    assert not database(wild_ignore_table=["shop.%"])


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("shop.orders", ["shop", "orders"]),
        ("`a.b`.`c``d`", ["a.b", "c`d"]),
        ("orders", ["orders"]),
        ("a.b.c", ["a", "b", "c"]),
        ("`a", None),
        ("a..b", None),
        ("a`b`", None),
        ("", None),
    ],
)
def test_names_may_be_quoted(text: str, parts: list[str] | None) -> None:
    assert name_parts(text) == parts


@pytest.mark.parametrize(
    ("given", "rename", "kinds", "key"),
    [
        ({"do_table": ["a.b.c"]}, "follow", [], "do_table"),
        ({"wild_do_table": ["shop"]}, "follow", [], "wild_do_table"),
        ({"do_db": [""]}, "follow", [], "do_db"),
        ({}, "somehow", [], "rename"),
        ({}, "follow", ["insertion"], "do-event"),
    ],
)
def test_what_cannot_be_read_names_the_option(
    given: dict[str, list[str]], rename: str, kinds: list[str], key: str
) -> None:
    with pytest.raises(ConfigError) as told:
        parse_terms(given, rename=rename, kinds=kinds)
    assert told.value.key == key


def test_lists_in_one_text() -> None:
    assert read_names("shop.a, `crm`.`b,c`", "doTable") == ("shop.a", "`crm`.`b,c`")
    assert read_names('["shop.a", "x,y"]', "doTable") == ("shop.a", "x,y")
    with pytest.raises(ConfigError):
        read_names("[1]", "doTable")


def test_equal_terms_have_equal_texts() -> None:
    one = parse_terms({"do_table": ["shop.a", "b"]}, kinds=["insert,ddl"])
    other = parse_terms({"do_table": ["`b`", "`shop`.a"]}, kinds=["ddl", "insert"])
    assert one.text == other.text != ""
    assert parse_terms({}).text == ""
