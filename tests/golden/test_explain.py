"""Every event of every set is explained: all its bytes, each once, and every field of its class."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

import pytest

from binlane.binlogs.cat.explain.explanation import Explanation, explain
from binlane.binlogs.cat.explain.explanation_text import explanation_json, explanation_text
from binlane.binlogs.cat.explain.find import FoundEvent
from binlane.log.codec.control import FormatDescriptionEvent
from binlane.log.codec.event import Event
from binlane.log.codec.format import Format
from binlane.log.codec.rows import TableMapEvent
from binlane.log.grouping.walk import walk
from tests.fixture_sets import fixture_names, fixture_set

SETS = [
    name
    for name in fixture_names()
    if not name.startswith("corrupt") and "encrypted" not in name and "bigrow" not in name
]
_UNDECODABLE = "md1011_types_temporal_hires53"
_EVENTS_OF_TYPE = 3
# Made from other fields, or for old forms that no server of the sets writes.
_WITHOUT_BYTES = {"has_short_id", "record", "has_tags", "head"}


def found_events(name: str) -> Iterator[tuple[Event, FoundEvent]]:
    """A few events of each type with what stands before them."""
    seen: dict[str, int] = {}
    for file, data in fixture_set(name).binlogs:
        format_: Format | None = None
        maps: dict[int, TableMapEvent] = {}
        for event in walk([data], file=file):
            seen[event.header.type_name] = seen.get(event.header.type_name, 0) + 1
            if seen[event.header.type_name] <= _EVENTS_OF_TYPE:
                yield (
                    event,
                    FoundEvent(
                        file=file,
                        position=event.position,
                        data=data[event.position : event.next_position],
                        format=format_,
                        table_maps=dict(maps),
                    ),
                )
            if isinstance(event.body, FormatDescriptionEvent):
                format_ = event.body.format
            elif isinstance(event.body, TableMapEvent):
                maps[event.body.table_id] = event.body


def wire_bytes(explanation: Explanation) -> bytes:
    """The bytes of the parts that follow each other: header, body, checksum."""
    parts = [
        line
        for section in explanation.sections
        if section.title in {"header", "of another writer", "body", "checksum"}
        for line in section.lines
    ]
    ordered = sorted(parts, key=lambda line: line.offset or 0)
    return b"".join(line.data for line in ordered)


@pytest.mark.parametrize("name", SETS)
def test_all_bytes_are_explained_once(name: str) -> None:
    for event, found in found_events(name):
        explanation = explain(found)
        assert wire_bytes(explanation) == found.data, event.header.type_name


@pytest.mark.parametrize("name", [name for name in SETS if name != _UNDECODABLE])
def test_sound_events_have_no_faults(name: str) -> None:
    for event, found in found_events(name):
        assert explain(found).faults == (), event


@pytest.mark.parametrize("name", SETS)
def test_every_field_with_a_value_is_named(name: str) -> None:
    for event, found in found_events(name):
        named = {line.name for section in explain(found).sections for line in section.lines}
        wanted = {
            field.name
            for field in fields(event.body)  # type: ignore[arg-type]  # every body is a dataclass
            if getattr(event.body, field.name) not in (None, b"", "", (), 0)
        }
        if "record" in named:
            wanted -= {"images"}  # they are told row by row
        assert wanted - named <= _WITHOUT_BYTES, event


@pytest.mark.parametrize(
    "name", ["md1011_metadata_full", "my97_json_partial", "md1011_identifiers"]
)
def test_text_fits_a_terminal(name: str) -> None:
    for _, found in found_events(name):
        explanation = explain(found)
        lines = list(explanation_text(explanation, width=80, color=False))
        assert max(map(len, lines[1:])) <= 80
        assert explanation_json(explanation)["faults"] == []
