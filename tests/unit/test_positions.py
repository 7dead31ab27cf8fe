from __future__ import annotations

import pytest

from binlane.positions import (
    FilePosition,
    Gtid,
    GtidPosition,
    GtidSet,
    MysqlGtid,
    nothing_done,
    parse_position,
)


def position(text: str) -> GtidPosition:
    return GtidPosition.parse(text)


@pytest.mark.parametrize("text", ["0-1-5", "4294967295-4294967295-18446744073709551615"])
def test_a_gtid_is_read_as_it_is_written(text: str) -> None:
    assert str(Gtid.parse(text)) == text
    assert Gtid.parse(f" {text}\n") == Gtid.parse(text)


@pytest.mark.parametrize(
    "text", ["", "0-1", "0-1-2-3", "a-1-2", "0--1-2", "0-1-+2", "0-1-²", "uuid:1", "1 0-1-2"]
)
def test_what_is_no_gtid(text: str) -> None:
    with pytest.raises(ValueError, match="is no MariaDB GTID"):
        Gtid.parse(text)


@pytest.mark.parametrize("text", ["4294967296-1-1", "0-4294967296-1", "0-1-18446744073709551616"])
def test_parts_have_limits(text: str) -> None:
    with pytest.raises(ValueError, match="out of range"):
        Gtid.parse(text)


def test_a_position_is_written_by_domain() -> None:
    assert str(position("7-1-2, 0-1-5")) == "0-1-5,7-1-2"
    assert position("") == GtidPosition()
    assert not position("")
    with pytest.raises(ValueError, match="names a domain twice"):
        position("0-1-5,0-2-6")


def test_a_position_covers_what_is_done() -> None:
    here = position("0-1-5,7-1-2")
    assert here.covers(Gtid(0, 9, 5))
    assert not here.covers(Gtid(0, 1, 6))
    assert not here.covers(Gtid(1, 1, 1))
    assert here.last(7) == Gtid(7, 1, 2)
    assert here.last(8) is None
    assert here.includes(position("0-1-3"))
    assert not here.includes(position("0-1-3,8-1-1"))


def test_a_position_moves_on() -> None:
    assert str(position("0-1-5,7-1-2").advance(Gtid(0, 3, 6))) == "0-3-6,7-1-2"
    assert str(position("").advance(Gtid(4, 1, 1))) == "4-1-1"


def test_positions_meet_and_join() -> None:
    mine, yours = position("0-1-5,7-1-2"), position("0-2-3,7-1-9,8-1-1")
    assert str(mine.union(yours)) == "0-1-5,7-1-9,8-1-1"
    assert str(mine.intersection(yours)) == "0-2-3,7-1-2"
    assert mine.union(position("")) == mine
    assert not mine.intersection(position(""))


def test_file_positions_sort_and_print() -> None:
    assert str(FilePosition("orders.000001", 4)) == "orders.000001:4"
    assert FilePosition("a.000001", 900) < FilePosition("a.000002", 4)
    assert FilePosition("a.999999", 900) < FilePosition("a.1000000", 4)
    assert FilePosition("b.000001", 4) > FilePosition("a.000002", 9)
    assert FilePosition("x", 9) < FilePosition("x.y", 4)


SOURCE = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
OTHER = "4e11fa47-71ca-11e1-9e33-c80aa9429562"


def test_a_mysql_gtid_reads_its_own_text() -> None:
    plain = MysqlGtid(SOURCE, 7)
    tagged = MysqlGtid(SOURCE, 7, "shop")
    assert str(plain) == f"{SOURCE}:7"
    assert str(tagged) == f"{SOURCE}:shop:7"
    assert MysqlGtid.parse(f" {SOURCE.upper()}:7 ") == plain
    assert MysqlGtid.parse(f"{SOURCE}:SHOP:7") == tagged


@pytest.mark.parametrize(
    "text", ["", "0-1-5", SOURCE, f"{SOURCE}:1-2", f"{SOURCE}:1:3", f"{SOURCE}:0"]
)
def test_what_is_no_mysql_gtid_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"GTID|range"):
        MysqlGtid.parse(text)


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("", ""),
        (" , ,", ""),
        (f"{SOURCE}:1-3:4:9-5", f"{SOURCE}:1-4"),
        (f"{OTHER}:2,\n{SOURCE}:7:b:1-2:a:3,{SOURCE}:8", f"{SOURCE}:7-8:a:3:b:1-2,{OTHER}:2"),
        (f"{SOURCE.replace('-', '')} : 5", f"{SOURCE}:5"),
    ],
)
def test_a_gtid_set_has_one_text(text: str, normal: str) -> None:
    gtid_set = GtidSet.parse(text)
    assert str(gtid_set) == normal
    assert bool(gtid_set) == bool(normal)
    assert GtidSet.parse(normal) == gtid_set


@pytest.mark.parametrize(
    "text",
    [
        SOURCE,
        "x:1",
        f"{SOURCE}:",
        f"{SOURCE}:1-",
        f"{SOURCE}:0-5",
        f"{SOURCE}:{2**63}",
        f"{SOURCE}:é:1",
    ],
)
def test_what_is_no_gtid_set_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"GTID|interval|range"):
        GtidSet.parse(text)


def test_a_gtid_set_knows_what_it_holds() -> None:
    gtid_set = GtidSet.parse(f"{SOURCE}:1-3:7:a:5")
    held = [MysqlGtid(SOURCE, number) for number in range(9)]
    assert [gtid.sequence for gtid in held if gtid in gtid_set] == [1, 2, 3, 7]
    assert MysqlGtid(SOURCE, 5, "a") in gtid_set
    assert MysqlGtid(OTHER, 1) not in gtid_set
    assert str(gtid_set.union(GtidSet.of(held[4:7]))) == f"{SOURCE}:1-7:a:5"


_A, _B = "3e11fa47-71ca-11e1-9e33-c80aa9429562", "4e11fa47-71ca-11e1-9e33-c80aa9429562"


@pytest.mark.parametrize(
    ("mine", "yours", "both", "either", "only_mine"),
    [
        (f"{_A}:1-5", f"{_A}:3-9", f"{_A}:3-5", f"{_A}:1-9", f"{_A}:1-2"),
        (f"{_A}:1-5", "", "", f"{_A}:1-5", f"{_A}:1-5"),
        (f"{_A}:1-5", f"{_B}:1-5", "", f"{_A}:1-5,{_B}:1-5", f"{_A}:1-5"),
        (f"{_A}:t:1-5", f"{_A}:2", "", f"{_A}:2:t:1-5", f"{_A}:t:1-5"),
        (
            f"{_A}:1-9:20",
            f"{_A}:4-5:7:19-21",
            f"{_A}:4-5:7:20",
            f"{_A}:1-9:19-21",
            f"{_A}:1-3:6:8-9",
        ),
    ],
)
def test_sets_of_mysql_meet_join_and_part(
    mine: str, yours: str, both: str, either: str, only_mine: str
) -> None:
    left, right = GtidSet.parse(mine), GtidSet.parse(yours)
    assert str(left.intersection(right)) == both
    assert str(left.union(right)) == either
    assert str(left.subtract(right)) == only_mine
    assert left.includes(right) == (not yours)
    assert left.union(right).includes(right)


def test_a_set_moves_on() -> None:
    here = GtidSet.parse(f"{_A}:1-5:7,{_B}:t:3")
    assert str(here.advance(MysqlGtid(_A, 8))) == f"{_A}:1-5:7-8,{_B}:t:3"
    assert str(here.advance(MysqlGtid(_A, 6))) == f"{_A}:1-7,{_B}:t:3"
    assert str(here.advance(MysqlGtid(_B, 4))) == f"{_A}:1-5:7,{_B}:4:t:3"
    assert here.covers(MysqlGtid(_B, 3, "t"))
    assert not here.covers(MysqlGtid(_A, 6))
    assert not here.covers(Gtid(0, 1, 1))
    assert not GtidPosition().covers(MysqlGtid(_A, 1))


def test_what_is_ahead_of_a_position() -> None:
    assert str(position("0-1-5,7-1-2").subtract(position("0-1-5,7-1-1"))) == "7-1-2"


@pytest.mark.parametrize(("flavor", "text"), [("mariadb", "0-1-5"), ("mysql", f"{_A}:1-5")])
def test_a_position_is_read_in_its_flavor(flavor: str, text: str) -> None:
    assert str(parse_position(text, flavor)) == text
    assert parse_position("", flavor) == nothing_done(flavor)
    assert parse_position(text, flavor).flavor == flavor
