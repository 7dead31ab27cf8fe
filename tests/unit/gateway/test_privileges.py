"""SHOW GRANTS of real servers, and what it allows."""

from __future__ import annotations

import pytest

from binlane.errors import StatementError
from binlane.gateway.privileges import Privilege, check, global_privileges

REPLICA = [
    "GRANT REPLICATION SLAVE ON *.* TO `replica`@`%` IDENTIFIED BY PASSWORD '*ABC'",
    "GRANT SELECT ON `shop`.* TO `replica`@`%`",
]
ROOT = ["GRANT ALL PRIVILEGES ON *.* TO `root`@`localhost` WITH GRANT OPTION"]
READER = [
    "GRANT `app` TO `reader`@`%`",
    "GRANT USAGE ON *.* TO `reader`@`%`",
    "GRANT ALL PRIVILEGES ON `shop`.* TO `reader`@`%`",
    "GRANT SELECT ON `REPLICATION SLAVE`.* TO `reader`@`%`",
]
ADMIN = [
    "GRANT SELECT, RELOAD, BINLOG MONITOR, BINLOG ADMIN, REPLICATION SLAVE ADMIN ON *.* TO `a`@`%`"
]
MYSQL_ADMIN = ["GRANT BINLOG_ADMIN,CLONE_ADMIN ON *.* TO `a`@`%`"]


@pytest.mark.parametrize(
    "privilege, grants",
    [
        (Privilege.READ, REPLICA),
        (Privilege.READ, ROOT),
        (Privilege.DEFINE, ROOT),
        (Privilege.DEFINE, ADMIN),
        (Privilege.DEFINE, MYSQL_ADMIN),
    ],
)
def test_allowed(privilege: Privilege, grants: list[str]) -> None:
    check(privilege, grants)


@pytest.mark.parametrize(
    "privilege, grants, named",
    [
        (Privilege.READ, READER, "REPLICATION SLAVE"),
        (Privilege.READ, ADMIN, "REPLICATION SLAVE"),
        (Privilege.READ, [], "REPLICATION SLAVE"),
        (Privilege.DEFINE, REPLICA, "BINLOG ADMIN"),
        (Privilege.DEFINE, READER, "BINLOG ADMIN"),
    ],
)
def test_denied_as_the_servers_say_it(privilege: Privilege, grants: list[str], named: str) -> None:
    with pytest.raises(StatementError) as caught:
        check(privilege, grants)
    assert (caught.value.errno, caught.value.sqlstate) == (1227, "42000")
    assert caught.value.message == (
        f"Access denied; you need (at least one of) the {named} privilege(s) for this operation"
    )


def test_names_are_whole_and_global() -> None:
    assert global_privileges([*READER, *ADMIN]) == {
        *("USAGE", "SELECT", "RELOAD", "BINLOG MONITOR", "BINLOG ADMIN"),
        "REPLICATION SLAVE ADMIN",
    }
