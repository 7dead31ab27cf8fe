from __future__ import annotations

from collections.abc import Iterable

import pytest

from binlane.binlogs.cat.sql.flashback import Flashback
from binlane.errors import UnsupportedError
from binlane.log.codec.body import Body
from binlane.log.codec.event import Event
from binlane.log.codec.rows import DeleteRowsV1Event, UpdateRowsV1Event
from binlane.log.codec.transaction import TransactionXid, XaPrepareEvent
from binlane.log.grouping.walk import walk
from tests import build
from tests.pairs import ONE, TABLE, TWO, XID, catalog, gtid, query


def script(*bodies: Event | Body) -> list[str]:
    """The statements of a flashback, without its head."""
    renderer = Flashback(catalog=catalog())
    for event in walk([build.log(*bodies)], file="binlog.000001"):
        assert list(renderer.lines(event, file="binlog.000001")) == []
    return statements(renderer.finish())


def statements(lines: Iterable[str]) -> list[str]:
    return [line for line in lines if not line.startswith(("--", "SET "))]


def test_everything_is_taken_back_last_change_first() -> None:
    assert script(
        *(gtid(1), TABLE, build.rows(2, ONE + TWO), XID),
        *(gtid(2), TABLE, build.rows(2, ONE + TWO, kind=UpdateRowsV1Event), XID),
        *(gtid(3), TABLE, build.rows(2, TWO, kind=DeleteRowsV1Event), XID),
    ) == [
        "BEGIN;",
        "INSERT INTO `shop`.`t` (`id`, `n`) VALUES (2, 20);",
        "COMMIT;",
        "BEGIN;",
        "UPDATE `shop`.`t` SET `id` = 1, `n` = 10 WHERE `id` <=> 2 AND `n` <=> 20 LIMIT 1;",
        "COMMIT;",
        "BEGIN;",
        "DELETE FROM `shop`.`t` WHERE `id` <=> 2 AND `n` <=> 20 LIMIT 1;",
        "DELETE FROM `shop`.`t` WHERE `id` <=> 1 AND `n` <=> 10 LIMIT 1;",
        "COMMIT;",
    ]


def test_a_group_that_never_ended_was_never_committed() -> None:
    assert script(
        *(gtid(1), TABLE, build.rows(2, ONE), XID),
        *(gtid(2), TABLE, build.rows(2, TWO)),
    ) == [
        "BEGIN;",
        "DELETE FROM `shop`.`t` WHERE `id` <=> 1 AND `n` <=> 10 LIMIT 1;",
        "COMMIT;",
    ]


def test_nothing_to_take_back() -> None:
    assert script() == []


def test_statements_that_change_no_table_are_passed_over() -> None:
    group = (gtid(1), query(b"SAVEPOINT `a`"), TABLE, build.rows(2, ONE), query(b"COMMIT"))
    temporary = query(b"DROP /*!40005 TEMPORARY */ TABLE IF EXISTS `shop`.`x`")
    assert len(script(*group, gtid(2, flags=1), temporary)) == 3


@pytest.mark.parametrize(
    ("bodies", "said"),
    [
        ((gtid(1, flags=1), query(b"INSERT INTO t SELECT * FROM u")), "'INSERT INTO t SELECT"),
        ((gtid(1, flags=1), query(b"ALTER TABLE t DROP n")), "'ALTER TABLE t DROP n'"),
        ((gtid(1), TABLE, build.rows(2, ONE), query(b"ROLLBACK")), "a ROLLBACK after rows"),
        (
            (gtid(1), TABLE, build.rows(2, ONE), query(b"ROLLBACK TO `a`"), XID),
            "a ROLLBACK after rows",
        ),
        (
            (
                gtid(1),
                TABLE,
                build.rows(2, ONE),
                XaPrepareEvent(
                    one_phase=0, xid=TransactionXid(format_id=1, global_id=b"a", branch=b"")
                ),
            ),
            "an XA transaction",
        ),
        (
            (
                gtid(1),
                TABLE,
                build.rows(2, b"\xfe\x01\x00\x00\x00", kind=DeleteRowsV1Event, present=1),
            ),
            "the row that a DELETE removed",
        ),
        (
            (
                gtid(1),
                TABLE,
                build.rows(2, b"\xfe\x01\x00\x00\x00" + ONE, kind=UpdateRowsV1Event, present=1),
            ),
            "what an UPDATE changed",
        ),
    ],
)
def test_what_cannot_be_taken_back_is_an_error_with_its_place(
    bodies: tuple[Event | Body, ...], said: str
) -> None:
    with pytest.raises(UnsupportedError) as caught:
        script(*bodies)
    assert said in caught.value.message
    assert caught.value.file == "binlog.000001"
    assert caught.value.position is not None
    assert caught.value.hint


def test_foreign_keys_are_not_checked_on_the_way() -> None:
    head = list(Flashback().finish())
    assert any("foreign_key_checks = 0" in line for line in head)
    assert any("time_zone = '+00:00'" in line for line in head)
