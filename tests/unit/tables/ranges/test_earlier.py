"""The log before a range is searched backwards for the group that an XA transaction prepared."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from binlane.log.grouping.event_group import EventGroup, group_events
from binlane.log.grouping.walk import walk
from binlane.log.grouping.xa import finished_by, prepared_by
from binlane.tables.ranges.earlier import LogBefore
from binlane.tables.ranges.log_range import LogRange
from tests.fixture_sets import fixture_set


@pytest.mark.parametrize("piece_bytes", [150, 1000, 1 << 20])
@pytest.mark.parametrize("name", ["md1011_xa", "my97_xa"])
def test_what_an_xa_commit_means_is_found(name: str, piece_bytes: int, tmp_path: Path) -> None:
    prepared: dict[str, tuple[str, EventGroup]] = {}
    earlier: tuple[str, ...] = ()
    finished = 0
    for file, data in fixture_set(name).binlogs:
        path = tmp_path / file
        path.write_bytes(data)
        piece = LogRange(uri=str(path), name=file, number=1, earlier=earlier)
        for group in group_events(walk([data], file=file), file=file):
            for event in group.events:
                xid = finished_by(event)
                if xid is None:
                    continue
                finished += 1
                range_ = replace(piece, start=group.position, stop=group.next_position)
                with closing(LogBefore(range_, piece_bytes=piece_bytes)) as before:
                    found = before.find(xid)
                    assert before.find("X'ff',X'',9") is None
                uri, expected = prepared[xid]
                assert found is not None
                assert (found.path, found.start, found.end) == (
                    uri,
                    expected.position,
                    expected.next_position,
                )
            xid = prepared_by(group.events[-1])
            if xid is not None:
                prepared[xid] = str(path), group
        earlier = (str(path), *earlier)
    assert finished > 5
