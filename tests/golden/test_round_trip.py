"""Every event of every whole file of the fixtures comes out as it went in."""

from __future__ import annotations

import pytest

from binlane.codec.control import FormatDescriptionEvent
from binlane.codec.event import encode_event
from binlane.codec.format import MAGIC
from binlane.codec.query import QueryEvent
from binlane.codec.status_vars import decode_status_vars, encode_status_vars
from binlane.grouping.event_group import group_events
from binlane.grouping.walk import walk
from tests.fixture_sets import fixture_names, fixture_set

WHOLE = [
    name
    for name in (*fixture_names("md"), *fixture_names("synth"))
    if fixture_set(name).binlogs and name != "md1011_encrypted"
]


@pytest.mark.parametrize("name", WHOLE)
def test_encoding_is_the_exact_inverse_of_decoding(name: str) -> None:
    for file, data in fixture_set(name).binlogs:
        made = MAGIC
        format_ = None
        for event in walk([data], file=file):
            if isinstance(event.body, FormatDescriptionEvent):
                format_ = event.body.format
            encoded = encode_event(event, format_)
            assert encoded == data[event.position : event.next_position], event
            made += encoded
        assert made == data


@pytest.mark.parametrize("name", WHOLE)
def test_no_event_is_lost_between_event_groups(name: str) -> None:
    for file, data in fixture_set(name).binlogs:
        events = list(walk([data], file=file))
        groups = list(group_events(events, file=file))
        assert [event for group in groups for event in group.events] == events


@pytest.mark.parametrize("name", WHOLE)
def test_all_status_variables_are_known_and_come_out_as_they_went_in(name: str) -> None:
    for file, data in fixture_set(name).binlogs:
        for event in walk([data], file=file):
            if isinstance(event.body, QueryEvent):
                variables = decode_status_vars(event.body.status_vars)
                assert encode_status_vars(variables) == event.body.status_vars
                assert "UNKNOWN" not in {variable.name for variable in variables}
