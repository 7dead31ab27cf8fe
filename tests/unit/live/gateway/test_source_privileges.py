"""SHOW GRANTS of real servers, and what it allows.

The hostile lines were printed by MariaDB 10.11 and MySQL 9.7; `tests/system/test_privileges.py` asks
them again.
"""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from binlane.errors import StatementError
from binlane.live.gateway.source_privileges import SourcePrivilege, check, global_privileges

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
        (SourcePrivilege.READ, REPLICA),
        (SourcePrivilege.READ, ROOT),
        (SourcePrivilege.MONITOR, REPLICA),
        (SourcePrivilege.MONITOR, MYSQL_ADMIN),
        (SourcePrivilege.EVENTS, ADMIN),
        (SourcePrivilege.FLUSH, ADMIN),
        (SourcePrivilege.REPLICAS, REPLICA),
        (SourcePrivilege.DEFINE, ROOT),
        (SourcePrivilege.DEFINE, ADMIN),
        (SourcePrivilege.DEFINE, MYSQL_ADMIN),
    ],
)
def test_allowed(privilege: SourcePrivilege, grants: list[str]) -> None:
    check(privilege, grants)


HOSTILE = [
    "GRANT `SUPER ON *.* TO` TO `u2`@`%`",
    "GRANT `SUPER ON *.* TO`@`%` TO `u2`@`%`",
    "GRANT USAGE ON *.* TO `SUPER ON *.* TO`",
    "GRANT USAGE ON *.* TO `u2`@`%` IDENTIFIED BY PASSWORD '*7B9EBEED26AA52ED10C0F549FA863F13C39E0209'",
    "GRANT ALL PRIVILEGES ON `x,SUPER ON *.* TO``a`.* TO `u2`@`%`",
    "GRANT SELECT (`a,SUPER ON *.* TO`, `b`), UPDATE (`b`) ON `shop`.`t,SUPER ON *.* TO` TO `u2`@`%`",
    "GRANT EXECUTE ON PROCEDURE `shop`.`x,super on *.* to` TO `u2`@`%`",
    "GRANT EXECUTE ON PROCEDURE `shop`.`x,SUPER ON *.* TO ` TO `u2`@`%`",
    "GRANT EXECUTE ON FUNCTION `shop`.`* to` TO `u2`@`%`",
    "GRANT PROXY ON `SUPER ON *.* TO`@`%` TO `u2`@`%`",
    "GRANT PROXY ON ``@`` TO `root`@`localhost` WITH GRANT OPTION",
    'GRANT "SUPER ON *.* TO" TO "u2"@"%"',
    'GRANT ALL PRIVILEGES ON "x,SUPER ON *.* TO`a".* TO "u2"@"%"',
    'GRANT SELECT ("a,SUPER ON *.* TO", b), UPDATE (b) ON shop."t,SUPER ON *.* TO" TO u2@"%"',
    "GRANT SELECT, INSERT ON test.* TO PUBLIC",
    "REVOKE SUPER ON `shop`.* FROM `u3`@`%`",
    "GRANT super TO u2",
    "GRANT `SUPER` ON *.* TO u2",
    "GRANT 'SUPER' ON *.* TO u2",
    "GRANT SUPER ON `*`.* TO u2",
    "GRANT SUPER ON `*.*` TO u2",
    "GRANT SUPER",
    "GRANT SUPER ON *.*",
    "GRANT , SUPER ON *.* TO u2",
    "GRANT SELECT SUPER ON *.* TO u2",
    "GRANT SUPER (a) ON *.* TO u2",
    "SUPER ON *.* TO u2",
    "GRANT `SUPER ON *.* TO u2",
    "GRANT /* ` SUPER ON *.* TO u2",
    "G\0R\0A\0N\0T\0 SUPER ON *.* TO u2",
    "",
]


@pytest.mark.parametrize("line", HOSTILE)
def test_names_of_objects_grant_nothing(line: str) -> None:
    assert global_privileges([line]).isdisjoint(
        {"SUPER", "BINLOG ADMIN", "ALL PRIVILEGES", "REPLICATION SLAVE"}
    )


NAMES = st.text(st.sampled_from("`\"'\\ ,*.()SUPERONTO\0\n\udcff"), max_size=24)


@given(NAMES, st.sampled_from('`"'), st.sampled_from(HOSTILE[:8]))
@example("x`,SUPER ON *.* TO `", "`", HOSTILE[4])
def test_no_name_grants_anything(name: str, quote: str, line: str) -> None:
    quoted = quote + name.replace(quote, quote * 2) + quote
    for grant in (
        f"GRANT {quoted} TO {quoted}",
        f"GRANT EXECUTE ON PROCEDURE {quoted}.{quoted} TO {quoted}@{quoted}",
        f"GRANT SELECT ({quoted}, {quoted}) ON {quoted}.{quoted} TO {quoted}",
        f"GRANT ALL PRIVILEGES ON {quoted}.* TO {quoted}@{quoted}",
        f"GRANT PROXY ON {quoted}@{quoted} TO {quoted}@{quoted}",
        line.replace("u2", name),
    ):
        assert global_privileges([grant]) <= {"USAGE"}


@pytest.mark.parametrize(
    "privilege, grants, named",
    [
        (SourcePrivilege.READ, READER, "REPLICATION SLAVE"),
        (SourcePrivilege.READ, ADMIN, "REPLICATION SLAVE"),
        (SourcePrivilege.READ, [], "REPLICATION SLAVE"),
        (SourcePrivilege.DEFINE, REPLICA, "BINLOG ADMIN, BINLOG_ADMIN, SUPER"),
        (SourcePrivilege.DEFINE, READER, "BINLOG ADMIN, BINLOG_ADMIN, SUPER"),
        (SourcePrivilege.DEFINE, HOSTILE, "BINLOG ADMIN, BINLOG_ADMIN, SUPER"),
        (SourcePrivilege.EVENTS, HOSTILE, "REPLICATION SLAVE, BINLOG MONITOR"),
        (SourcePrivilege.EVENTS, MYSQL_ADMIN, "REPLICATION SLAVE, BINLOG MONITOR"),
    ],
)
def test_denied_as_the_servers_say_it(
    privilege: SourcePrivilege, grants: list[str], named: str
) -> None:
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


def test_those_of_active_roles_and_of_everybody_count() -> None:
    assert global_privileges(
        [
            "GRANT SUPER, BINLOG ADMIN ON *.* TO `inner_role`",
            "GRANT BINLOG MONITOR ON *.* TO PUBLIC",
            'GRANT BINLOG_ADMIN,CLONE_ADMIN ON *.* TO u1@"%"',
        ]
    ) == {"SUPER", "BINLOG ADMIN", "BINLOG MONITOR", "BINLOG_ADMIN", "CLONE_ADMIN"}
