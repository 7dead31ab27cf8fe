from __future__ import annotations

import pytest

from binlane.errors import ConfigError
from binlane.live.capture.source_facts import SourceFacts, SourceFinding, Weight
from binlane.log.codec.types import Flavor
from binlane.positions import Gtid, GtidPosition, GtidSet
from tests.dumps import GRANT, MYSQL_VARIABLES, VARIABLES

BOTH = pytest.mark.parametrize("good", [VARIABLES, MYSQL_VARIABLES], ids=["mariadb", "mysql"])


def facts_of(variables: dict[str, str], *grants: str) -> SourceFacts:
    return SourceFacts.of(variables, account="o'neil@%", grants=grants or (GRANT,))


def finding(facts: SourceFacts, key: str) -> SourceFinding:
    (found,) = (found for found in facts.findings(server_id=77) if found.key == key)
    return found


@BOTH
def test_a_good_source(good: dict[str, str]) -> None:
    facts = facts_of(good)
    facts.check(server_id=2)
    assert list(facts.warnings()) == []
    assert {found.weight for found in facts.findings(server_id=2)} == {Weight.FINE}


def test_what_mariadb_says() -> None:
    facts = facts_of(VARIABLES | {"gtid_binlog_state": "0-2-3,0-1-4"})
    assert facts.flavor is Flavor.MARIADB
    assert facts.position == GtidPosition.parse("0-1-4")
    assert facts.last_gtids == (Gtid(0, 2, 3), Gtid(0, 1, 4))
    assert facts.identity == "1"


def test_what_mysql_says() -> None:
    facts = facts_of(MYSQL_VARIABLES)
    assert facts.flavor is Flavor.MYSQL
    assert facts.position == GtidSet.parse(MYSQL_VARIABLES["gtid_executed"])
    assert facts.purged == GtidSet.parse(MYSQL_VARIABLES["gtid_purged"])
    assert facts.identity == MYSQL_VARIABLES["server_uuid"]


@BOTH
@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("log_bin", "OFF"),
        ("binlog_format", "MIXED"),
        ("binlog_format", "STATEMENT"),
        ("binlog_row_image", "MINIMAL"),
    ],
)
def test_sources_that_cannot_be_the_ground_truth(
    good: dict[str, str], variable: str, value: str
) -> None:
    facts = facts_of(good | {variable: value})
    with pytest.raises(ConfigError) as caught:
        facts.check(server_id=2)
    assert caught.value.key == variable
    assert caught.value.hint
    found = finding(facts, variable)
    assert (found.value, found.weight) == (value, Weight.STOPS)


def test_what_mends_a_setting() -> None:
    wrong = {"binlog_format": "MIXED"}
    assert finding(facts_of(VARIABLES | wrong), "binlog_format").mend == (
        "SET GLOBAL binlog_format = ROW",
    )
    assert finding(facts_of(MYSQL_VARIABLES | wrong), "binlog_format").mend == (
        "SET PERSIST binlog_format = ROW",
    )


@pytest.mark.parametrize(
    ("mode", "steps"),
    [
        ("OFF", ["OFF_PERMISSIVE", "ON_PERMISSIVE", "ON"]),
        ("OFF_PERMISSIVE", ["ON_PERMISSIVE", "ON"]),
        ("ON_PERMISSIVE", ["ON"]),
    ],
)
def test_mysql_without_gtids_is_led_to_them(mode: str, steps: list[str]) -> None:
    found = finding(facts_of(MYSQL_VARIABLES | {"gtid_mode": mode}), "gtid_mode")
    assert found.weight is Weight.STOPS
    assert found.mend == (
        "SET PERSIST enforce_gtid_consistency = ON",
        *(f"SET PERSIST gtid_mode = {step}" for step in steps),
    )


def test_the_source_has_our_server_id() -> None:
    with pytest.raises(ConfigError, match="server id 1 is the source's own"):
        facts_of(VARIABLES).check(server_id=1)


@BOTH
@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("binlog_row_metadata", "MINIMAL"),
        ("binlog_row_metadata", "NO_LOG"),
        ("binlog_row_metadata", None),
        ("binlog_checksum", "NONE"),
    ],
)
def test_what_loses_something_is_warned_of(
    good: dict[str, str], variable: str, value: str | None
) -> None:
    variables = good | {variable: value or ""}
    if value is None:
        del variables[variable]
    facts = facts_of(variables)
    facts.check(server_id=2)
    (warning,) = facts.warnings()
    assert warning.key == variable
    assert value is None or value in warning.reason


@pytest.mark.parametrize(
    ("good", "version"), [(VARIABLES, "10.5.29-MariaDB"), (MYSQL_VARIABLES, "5.7.44")]
)
def test_old_sources_are_taken_with_a_warning(good: dict[str, str], version: str) -> None:
    (warning,) = facts_of(good | {"version": version}).warnings()
    assert version in warning.reason


def test_a_replica_that_does_not_log_what_it_replicates() -> None:
    variables = VARIABLES | {"log_slave_updates": "OFF"}
    assert not list(facts_of(variables).warnings())
    (warning,) = facts_of(variables | {"gtid_slave_pos": "0-9-1"}).warnings()
    assert warning.key == "log_slave_updates"


@pytest.mark.parametrize(
    "grants",
    [
        ["GRANT USAGE ON *.* TO `binlane`@`%`", "GRANT ALL PRIVILEGES ON `x`.* TO `binlane`@`%`"],
        ["GRANT SELECT ON *.* TO `x,REPLICATION SLAVE ON *.* TO `@`%`"],
    ],
)
def test_an_account_without_the_privilege(grants: list[str]) -> None:
    found = finding(facts_of(VARIABLES, *grants), "privilege")
    assert found.weight is Weight.STOPS
    assert found.mend == ("GRANT REPLICATION SLAVE ON *.* TO 'o''neil'@'%'",)


@pytest.mark.parametrize(
    "grants",
    [
        ["GRANT ALL PRIVILEGES ON *.* TO `binlane`@`%` WITH GRANT OPTION"],
        ["GRANT SELECT, REPLICATION SLAVE ON *.* TO `binlane`@`%` IDENTIFIED BY PASSWORD '*x'"],
        ["GRANT USAGE ON *.* TO `binlane`@`%`", "GRANT `readers`@`%` TO `binlane`@`%`"],
    ],
    ids=["all", "among others", "maybe by a role"],
)
def test_an_account_with_the_privilege(grants: list[str]) -> None:
    assert finding(facts_of(VARIABLES, *grants), "privilege").weight is Weight.FINE


@pytest.mark.parametrize(
    ("variables", "wanted"),
    [(VARIABLES, "BINLOG MONITOR"), (MYSQL_VARIABLES, "REPLICATION CLIENT")],
    ids=["mariadb", "mysql"],
)
def test_who_may_ask_where_the_log_ends(variables: dict[str, str], wanted: str) -> None:
    slave = "GRANT REPLICATION SLAVE ON *.* TO `binlane`@`%`"
    lacking = facts_of(variables, slave)
    assert lacking.log_end().is_lacking
    assert lacking.log_end().mend == (f"GRANT {wanted} ON *.* TO 'o''neil'@'%'",)
    # Capture does without, and says nothing of it at each connect.
    assert not [each for each in lacking.findings() if each.is_lacking]
    for privilege in (wanted, "SUPER", "ALL PRIVILEGES"):
        grant = f"GRANT {privilege}, REPLICATION SLAVE ON *.* TO `binlane`@`%`"
        assert not facts_of(variables, grant).log_end().is_lacking


@pytest.mark.parametrize(
    ("variables", "seconds"),
    [
        ({"binlog_expire_logs_seconds": "3600"}, "3600"),
        ({"expire_logs_days": "0.500000"}, "43200"),
    ],
)
def test_a_log_that_is_soon_deleted_is_worth_a_remark(
    variables: dict[str, str], seconds: str
) -> None:
    found = finding(facts_of(VARIABLES | variables), "binlog_expire_logs_seconds")
    assert found.weight is Weight.WARNING
    assert f"after {seconds} s" in found.reason
    assert not found.is_lacking


@pytest.mark.parametrize(
    "variables",
    [
        {"binlog_expire_logs_seconds": "0", "expire_logs_days": "0.000000"},
        {"binlog_expire_logs_seconds": "2592000"},
        {"expire_logs_days": "1"},
    ],
)
def test_a_log_that_is_kept_for_long(variables: dict[str, str]) -> None:
    assert finding(facts_of(VARIABLES | variables), "binlog_expire_logs_seconds").reason == ""


@pytest.mark.parametrize("version", ["10.5.29-MariaDB", "12.3.1-MariaDB-log", "9.8.0", "5.7.44"])
def test_a_version_that_nobody_tried_is_told_and_taken(version: str) -> None:
    good = VARIABLES if "MariaDB" in version else MYSQL_VARIABLES
    facts = facts_of(good | {"version": version})
    facts.check(server_id=77)
    assert version in finding(facts, "version").reason
    assert not finding(facts, "version").is_lacking


def test_what_can_be_mended_is_lacking() -> None:
    facts = facts_of(VARIABLES | {"binlog_row_metadata": "NO_LOG", "log_bin": "OFF"})
    assert [found.key for found in facts.findings() if found.is_lacking] == [
        "log_bin",
        "binlog_row_metadata",
    ]
