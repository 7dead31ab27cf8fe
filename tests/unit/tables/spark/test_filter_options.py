"""The options of the filter, as Spark's users give them."""

from __future__ import annotations

import pytest

from binlane.binlogs.filters.terms import RenameMode
from binlane.errors import ConfigError
from binlane.names import TableName
from binlane.tables.spark.source_options import SourceOptions


def test_the_options_of_the_filter() -> None:
    options = SourceOptions.parse(
        {
            "path": "p",
            "dotable": "shop.a, `crm`.`b,c`",
            "ignoreTable": '["shop.x"]',
            "wildDoTable": "s%.t",
            "rename": "name",
        }
    )
    terms = options.selection.filter_terms
    assert terms is not None
    assert terms.rules.do_tables == {TableName("shop", "a"), TableName("crm", "b,c")}
    assert terms.rules.ignore_tables == {TableName("shop", "x")}
    assert [pattern.text for pattern in terms.rules.wild_do] == ["s%.t"]
    assert terms.rename is RenameMode.NAME
    assert SourceOptions.parse({"path": "p"}).selection.filter_terms is None


def test_a_name_that_is_none_names_its_option() -> None:
    with pytest.raises(ConfigError) as told:
        SourceOptions.parse({"path": "p", "doTable": "a.b.c"})
    assert told.value.key == "do_table"
