"""Which starts a binlog takes, and what the servers say to all others."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from binlane.errors import CodecError, StatementError
from binlane.live.dump.start import (
    FileBeginning,
    check_connect_state,
    check_position,
    file_for,
    gtids_ahead,
)
from binlane.positions import FilePosition, Gtid, GtidPosition, GtidSet
from tests.fixture_sets import fixture_set

BEGIN = GtidPosition.parse("0-1-10")
WATERMARK = GtidPosition.parse("0-1-50,2-1-7")


def _files() -> list[tuple[str, bytes]]:
    return fixture_set("md1011_netstream").binlogs


def _heads() -> list[FileBeginning]:
    return [FileBeginning.decode(file, data) for file, data in _files()]


@dataclass
class Published:
    """A file and where it begins."""

    file: str
    begin: GtidPosition | GtidSet


def _published() -> list[Published]:
    return [Published(head.file, head.done) for head in _heads()]


def test_head_of_a_file() -> None:
    first, second = _heads()
    assert (first.file, first.done) == ("binlog.000001", GtidPosition())
    assert second.done == GtidPosition.parse("0-1-6")
    assert second.format.server_version.startswith("10.11.19-MariaDB")


def test_head_of_a_file_without_a_gtid_list() -> None:
    file, data = _files()[1]
    assert FileBeginning.decode(file, data[:256]).done == GtidPosition()


@pytest.mark.parametrize("data", [b"", b"\xfebin", b"\xfdbin" + bytes(100), b"#!/bin/sh" * 20])
def test_no_head(data: bytes) -> None:
    with pytest.raises(CodecError) as caught:
        FileBeginning.decode("orders.000001", data)
    assert caught.value.file == "orders.000001"


@given(st.integers(10, 50), st.sampled_from([1, 2, 9]), st.booleans())
def test_every_position_from_begin_to_watermark_is_a_start(
    sequence: int,
    server_id: int,
    has_second: bool,  # noqa: FBT001 - Hypothesis fills it in
) -> None:
    gtids = [Gtid(0, server_id, sequence), *([Gtid(2, 1, 3)] if has_second else [])]
    check_connect_state(GtidPosition.of(gtids), begin=BEGIN, watermark=WATERMARK, name="orders")


def test_domain_that_the_source_does_not_have_is_no_obstacle() -> None:
    state = GtidPosition.parse("0-1-20,5-1-1000")
    check_connect_state(state, begin=BEGIN, watermark=WATERMARK, name="orders")
    assert not gtids_ahead(state, WATERMARK)


@pytest.mark.parametrize(
    "state, text",
    [
        ("", "Could not find GTID state requested by slave in any binlog files"),
        ("0-1-9", "Could not find GTID state requested by slave in any binlog files"),
        ("2-1-3", "Could not find GTID state requested by slave in any binlog files"),
        ("0-1-51", "start from GTID 0-1-51, which is not in the master's binlog"),
        ("0-1-20,2-1-8", "start from GTID 2-1-8, which is not in the master's binlog"),
    ],
)
def test_positions_outside(state: str, text: str) -> None:
    with pytest.raises(StatementError, match=text) as caught:
        check_connect_state(
            GtidPosition.parse(state), begin=BEGIN, watermark=WATERMARK, name="orders"
        )
    assert caught.value.errno == 1236
    assert "orders" in caught.value.hint


@pytest.mark.parametrize(
    "state, file",
    [
        ("", "binlog.000001"),
        ("0-1-5", "binlog.000001"),
        ("0-1-6", "binlog.000002"),
        ("0-1-7", "binlog.000002"),
        ("0-9-7,3-1-1", "binlog.000002"),
    ],
)
def test_file_for_a_position(state: str, file: str) -> None:
    assert file_for(GtidPosition.parse(state), _published()).file == file


def test_few_of_many_files_are_looked_at() -> None:
    looked: list[int] = []

    @dataclass
    class Counted:
        number: int

        @property
        def begin(self) -> GtidPosition:
            looked.append(self.number)
            return GtidPosition.parse(f"0-1-{self.number * 10}" if self.number else "")

    files = [Counted(number) for number in range(10_000)]
    for sequence in (1, 9, 10, 54_321, 99_999, 10**9):
        looked.clear()
        found = file_for(GtidPosition.parse(f"0-1-{sequence}"), files)
        assert found.number == min(sequence // 10, 9_999)
        assert len(looked) <= 15


def test_no_file_left_for_a_position() -> None:
    with pytest.raises(StatementError, match="Could not find GTID state"):
        file_for(GtidPosition.parse("0-1-5"), _published()[1:])


def test_positions_in_a_file() -> None:
    file, data = _files()[0]
    events = [row["pos"] for row in _event_rows(data)]
    for position in range(len(data) + 10):
        start = FilePosition(file, position)
        if position in events or position == len(data):
            check_position(start, data[position:], end=len(data))
        else:
            with pytest.raises(StatementError, match="impossible position"):
                check_position(start, data[position:], end=len(data))


def _event_rows(data: bytes) -> list[dict[str, int]]:
    rows, position = [], 4
    while position < len(data):
        rows.append({"pos": position})
        position += int.from_bytes(data[position + 9 : position + 13], "little")
    return rows


SOURCE, OTHER = "c32a486b-e685-11f1-925e-02fc00000001", "d32a486b-e685-11f1-925e-02fc00000001"


def _set(text: str) -> GtidSet:
    return GtidSet.parse(text.replace("s:", f"{SOURCE}:").replace("o:", f"{OTHER}:"))


def _check_set(state: str, begin: str = "s:1-10") -> None:
    check_connect_state(
        _set(state),
        begin=_set(begin),
        watermark=_set("s:1-50,o:1-9"),
        name="orders",
        source_id=SOURCE,
    )


@pytest.mark.parametrize(
    "state",
    [
        "s:1-10",
        "s:1-50,o:1-9",
        # It has a group from behind the beginning, and so all before that was in scope.
        "s:3:12:14",
        "s:1:3,o:2",
        # Another server's GTIDs may be anywhere.
        "s:1-10,o:1-100",
    ],
)
def test_set_that_lacks_nothing_of_the_binlog_is_a_start(state: str) -> None:
    _check_set(state)


@pytest.mark.parametrize(
    "state, text, hint",
    [
        ("", f"the missing transactions are '{SOURCE}:1-10'", f"'+{SOURCE}:1-10'"),
        ("s:1-9", f"the missing transactions are '{SOURCE}:10'", "SET GLOBAL gtid_purged"),
        ("s:1-51", f"Replica has more GTIDs than the source has.*'{SOURCE}:51'", "complete up to"),
    ],
)
def test_set_that_is_no_start(state: str, text: str, hint: str) -> None:
    with pytest.raises(StatementError, match=text) as caught:
        _check_set(state)
    assert hint in caught.value.hint


def test_new_mysql_replica_of_a_whole_binlog() -> None:
    _check_set("", begin="")


def test_heads_of_mysqls_files() -> None:
    heads = [
        FileBeginning.decode(file, data) for file, data in fixture_set("my97_netstream").binlogs
    ]
    assert [str(head.done).rpartition(":")[2] for head in heads] == ["", "1-6"]


def test_mysql_begins_with_the_first_file_that_may_hold_what_it_lacks() -> None:
    files = [
        Published("a", _set("s:1-5")),
        Published("b", _set("s:1-9")),
        Published("c", _set("s:1-20")),
    ]
    assert file_for(_set("s:1-9"), files).file == "b"
    assert file_for(_set("s:1-8:10"), files).file == "a"
    assert file_for(_set("s:7"), files).file == "a"
