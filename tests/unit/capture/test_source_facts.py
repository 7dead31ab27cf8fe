from __future__ import annotations

import pytest

from binlane.capture.source_facts import SourceFacts
from binlane.codec.types import Flavor
from binlane.errors import ConfigError
from binlane.positions import GtidPosition

GOOD = {
    "version": "10.11.19-MariaDB-log",
    "server_id": "1",
    "gtid_domain_id": "0",
    "log_bin": "ON",
    "binlog_format": "ROW",
    "binlog_row_image": "FULL",
    "binlog_row_metadata": "FULL",
    "gtid_binlog_pos": "0-1-27,2-7-9",
}


def test_a_good_source() -> None:
    facts = SourceFacts.of(GOOD)
    assert facts.flavor is Flavor.MARIADB
    assert facts.gtid_binlog_position == GtidPosition.parse("0-1-27,2-7-9")
    facts.check(server_id=2)
    assert list(facts.warnings()) == []


@pytest.mark.parametrize(
    ("variable", "value", "key"),
    [
        ("version", "9.7.4", "source.url"),
        ("log_bin", "OFF", "log_bin"),
        ("binlog_format", "MIXED", "binlog_format"),
        ("binlog_format", "STATEMENT", "binlog_format"),
        ("binlog_row_image", "MINIMAL", "binlog_row_image"),
    ],
)
def test_sources_that_cannot_be_the_ground_truth(variable: str, value: str, key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        SourceFacts.of(GOOD | {variable: value}).check(server_id=2)
    assert caught.value.key == key
    assert caught.value.hint


def test_the_source_has_our_server_id() -> None:
    with pytest.raises(ConfigError, match="server id 1 is the source's own"):
        SourceFacts.of(GOOD).check(server_id=1)


@pytest.mark.parametrize("value", ["MINIMAL", "NO_LOG", None])
def test_without_names_in_the_log_a_source_is_taken_with_a_warning(value: str | None) -> None:
    variables = GOOD | {"binlog_row_metadata": value or ""}
    if value is None:
        del variables["binlog_row_metadata"]
    facts = SourceFacts.of(variables)
    facts.check(server_id=2)
    (warning,) = facts.warnings()
    assert f"binlog_row_metadata = {value or 'NO_LOG'}" in warning
