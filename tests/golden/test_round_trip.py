"""Every event of every whole file of the fixtures comes out as it went in."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from zstandard import ZstdDecompressor

from binlane.log.codec.control import FormatDescriptionEvent
from binlane.log.codec.event import decode_event, encode_event
from binlane.log.codec.format import MAGIC
from binlane.log.codec.payload import TransactionPayloadEvent
from binlane.log.codec.query import QueryEvent
from binlane.log.codec.status_vars import decode_status_vars, encode_status_vars
from binlane.log.codec.types import ChecksumAlgorithm, EventType
from binlane.log.grouping.event_group import group_events
from binlane.log.grouping.inner import expanded
from binlane.log.grouping.walk import walk
from tests.fixture_sets import fixture_names, fixture_set, server_sets

WHOLE = [
    name for name in (*server_sets(), *fixture_names("synth")) if not name.endswith("_encrypted")
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
def test_so_it_is_inside_of_transaction_payloads(name: str) -> None:
    for file, data in fixture_set(name).binlogs:
        inside: dict[int, bytes] = {}
        for event in walk([data], file=file):
            if isinstance(event.body, FormatDescriptionEvent):
                format_ = event.body.format
                plain_format = replace(format_, checksum=ChecksumAlgorithm.NONE)
            if not isinstance(event.body, TransactionPayloadEvent):
                continue
            carrier, *inner = expanded(event, format_, file=file)
            assert carrier == event
            assert [item.inner for item in inner] == list(range(1, len(inner) + 1))
            assert {(item.position, item.next_position) for item in inner} == {
                (event.position, event.next_position)
            }
            inside[event.position] = b"".join(encode_event(item, plain_format) for item in inner)
            payload = ZstdDecompressor().decompressobj().decompress(event.body.payload)
            assert inside[event.position] == payload
        assert bool(inside) == (name == "my97_compressed")


PACKETS = [
    (name, path)
    for name in server_sets()
    for path in fixture_set(name).files
    if path.startswith("crc_heartbeat")
]


@pytest.mark.parametrize(("name", "path"), PACKETS)
def test_so_it_is_as_servers_send_it(name: str, path: str) -> None:
    """A packet is a zero byte and an event; heartbeats are in no file."""
    packets = [json.loads(line) for line in fixture_set(name).text(path).splitlines()]
    format_ = None
    kinds: set[EventType] = set()
    for packet in packets:
        data = bytes.fromhex(packet["hex"])
        if data[0] != 0:
            continue
        kind = EventType(data[5])
        if format_ is None and kind is EventType.ROTATE:
            continue  # Whether it has a checksum is told behind it.
        event = decode_event(data[1:], format_)
        if isinstance(event.body, FormatDescriptionEvent):
            format_ = event.body.format
        assert encode_event(event, format_) == data[1:]
        kinds.add(kind)
    assert EventType.QUERY in kinds
    is_second = path == "crc_heartbeat_v2.packets.jsonl"
    assert (EventType.HEARTBEAT_V2 in kinds) == is_second
    assert (EventType.HEARTBEAT in kinds) != is_second


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
