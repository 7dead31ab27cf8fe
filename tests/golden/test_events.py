"""Every event of real files against what their servers' SHOW BINLOG EVENTS says of it."""

from __future__ import annotations

import re

import pytest

from binlane.errors import UnsupportedError
from binlane.log.codec.control import BinlogCheckpointEvent, StopEvent
from binlane.log.codec.event import Event
from binlane.log.codec.types import Flavor
from binlane.log.grouping.event_list import listed_event
from binlane.log.grouping.inner import expanded_all
from binlane.log.grouping.walk import walk
from tests.fixture_sets import EventRow, fixture_set, mysql_sets, server_sets

READABLE = [
    name
    for name in server_sets()
    if "events.tsv" in fixture_set(name) and not name.endswith("_encrypted")
]


@pytest.mark.rule("001:compression")
@pytest.mark.rule("001:upward-compatible")
@pytest.mark.parametrize("name", READABLE)
def test_every_event_is_what_the_server_lists(name: str) -> None:
    fixture = fixture_set(name)
    flavor = Flavor.MYSQL if name in mysql_sets() else Flavor.MARIADB
    listed = iter(fixture.events())
    unlisted = []
    for file, data in fixture.binlogs:
        for event in expanded_all(walk([data], file=file), file=file):
            row = next(listed, None)
            if row is None:
                unlisted.append((file, event))
            else:
                assert file == row["file"]
                check(event, row, flavor)
    assert next(listed, None) is None
    # The list was taken before the server stopped.
    assert {file for file, _ in unlisted} <= {fixture.binlogs[-1][0]}
    assert {type(event.body) for _, event in unlisted} <= {StopEvent, BinlogCheckpointEvent}


def check(event: Event, row: EventRow, flavor: Flavor = Flavor.MARIADB) -> None:
    """One event against one line of SHOW BINLOG EVENTS."""
    where = f"{row['file']}:{row['pos']}"
    ours = listed_event(event, flavor)
    listed = row["pos"], row["type"], row["server_id"], row["end_log_pos"]
    assert ours[:4] == listed, where
    # MariaDB 11.7 and later write 0 inside of groups, and list it.
    assert ours.end in {event.next_position, 0}, where
    assert_same_text(ours.info, row["info"])


def assert_same_text(ours: str, listed: str) -> None:
    """Equal but for what the server's list cannot hold.

    The server has 255 bytes for the names in a TABLE_MAP, and MySQL goes on with what its memory
    holds behind them; the list holds 600 characters of a text, escapes counted.
    """
    if ours.startswith("table_id") and len(ours.encode()) > 255:
        ours = ours.encode()[:254].decode("utf-8", "ignore")
        listed = listed[: len(ours)]
    if match := _CUT.fullmatch(listed):
        assert len(ours) + len(_ESCAPED.findall(ours)) == int(match[2])
        listed = match[1]
    else:
        assert len(ours) == len(listed)
    assert ours[: len(listed)] == listed


_CUT = re.compile(r"(.{500,600})\.\.\.\[(\d+)\]", re.DOTALL)
_ESCAPED = re.compile(r"[\n\r\t\0\\]")


def test_an_encrypted_file_is_read_up_to_its_encryption() -> None:
    fixture = fixture_set("md1011_encrypted")
    for file, data in fixture.binlogs:
        events = walk([data], file=file)
        for row in [row for row in fixture.events() if row["file"] == file][:2]:
            check(next(events), row)
        with pytest.raises(UnsupportedError) as caught:
            next(events)
        assert (caught.value.file, caught.value.position) == (file, 296)
        assert "--encryption-keys" in caught.value.hint
