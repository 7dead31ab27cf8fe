"""Where a MySQL replica that has gaps lacks something is told by the groups, not by the files' heads."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from binlane.binlogs.store.files import BinlogFile, read_head
from binlane.binlogs.store.held_gtids import first_lacking
from binlane.log.codec.control import IncidentEvent
from binlane.log.codec.event import Event
from binlane.log.codec.types import EventType
from binlane.log.grouping.event_group import gtid_of
from binlane.log.grouping.placing import place
from binlane.log.grouping.walk import walk
from binlane.positions import GtidSet, MysqlGtid
from tests.fixture_sets import fixture_set


class Log:
    """The files of a recorded log, and what stands in each."""

    def __init__(self, directory: Path, fixture: str) -> None:
        self.files: list[BinlogFile] = []
        self.held: list[list[MysqlGtid]] = []
        for name, data in fixture_set(fixture).binlogs:
            path = directory / name
            path.write_bytes(data)
            begin = read_head(path).begin
            self.files.append(
                BinlogFile(
                    directory=directory,
                    name=name,
                    size_bytes=len(data),
                    begin_gtids=str(begin),
                    flavor=begin.flavor,
                )
            )
            found = [gtid_of(event) for event in walk([data], file=name)]
            self.held.append([gtid for gtid in found if isinstance(gtid, MysqlGtid)])
        assert len(self.files) > 1

    @property
    def gtids(self) -> list[MysqlGtid]:
        return [gtid for held in self.held for gtid in held]

    def first_lacking(self, done: set[MysqlGtid]) -> int:
        """As the reference has it: the last file is not looked into."""
        lacking = (n for n, held in enumerate(self.held[:-1]) if set(held) - done)
        return next(lacking, len(self.held) - 1)


@pytest.fixture(scope="module", params=["my97_rotation", "my97_gtid_tagged", "my97_xa"])
def log(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Log:
    return Log(tmp_path_factory.mktemp("log"), request.param)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_first_file_that_lacks_something(log: Log, data: st.DataObject) -> None:
    done = data.draw(st.sets(st.sampled_from(log.gtids)))
    assert first_lacking(log.files, GtidSet.of(done)) == log.first_lacking(done)


def test_replica_that_has_all_but_one(log: Log) -> None:
    everything = set(log.gtids)
    assert first_lacking(log.files, GtidSet.of(everything)) == len(log.files) - 1
    for number, held in enumerate(log.held[:-1]):
        for gtid in held:
            assert first_lacking(log.files, GtidSet.of(everything - {gtid})) == number


def test_a_file_that_cannot_be_read_is_where_to_begin(log: Log, tmp_path: Path) -> None:
    damaged = Log(tmp_path, "my97_rotation")
    damaged.files[0].path.write_bytes(b"no binlog")
    assert first_lacking(damaged.files, GtidSet.of(damaged.gtids[1:])) == 0


def test_a_file_that_ends_with_a_gap_is_where_to_begin(tmp_path: Path) -> None:
    """Its INCIDENT tells of what stands in no file, to whoever lacks that."""
    log = Log(tmp_path, "my97_rotation")
    first, second = log.files[:2]
    events = list(walk([first.path.read_bytes()], file=first.name))
    end = events[-2].next_position
    header = replace(events[-2].header, type_code=EventType.INCIDENT, flags=0)
    incident = Event(header, IncidentEvent(number=1, message=b"a gap"))
    format_ = read_head(first.path).format_description.format
    gap = GtidSet.of([MysqlGtid(log.gtids[0].source_id, 1000)])
    log.files[1] = replace(second, begin_gtids=str(GtidSet.of(log.held[0]).union(gap)))
    done = GtidSet.of(log.gtids)
    for tail, expected in ((b"", len(log.files) - 1), (place(incident, end, format_), 0)):
        first.path.write_bytes(first.path.read_bytes()[:end] + tail)
        log.files[0] = replace(first, size_bytes=end + len(tail))
        assert first_lacking(log.files, done) == expected
        assert first_lacking(log.files, done.union(gap)) == len(log.files) - 1
