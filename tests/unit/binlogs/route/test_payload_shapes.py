"""Compressed transactions of MySQL: what is judged once for a shape is what the reference makes of each."""

from __future__ import annotations

import re
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
import zstandard

from binlane.binlogs.routing.payload_shapes import PayloadReader
from binlane.binlogs.routing.routing_memory import NOTHING, Memory
from binlane.binlogs.routing.run_groups import RunGroups
from binlane.binlogs.routing.spans import SpanRouter
from binlane.binlogs.store.byte_source import FileBytes
from binlane.log.codec.control import FormatDescriptionEvent
from binlane.log.codec.event import Event, encode_event
from binlane.log.codec.format import MAGIC, Format
from binlane.log.codec.mysql_transaction import MysqlGtidEvent
from binlane.log.codec.payload import TransactionPayloadEvent
from binlane.log.codec.query import RowsQueryEvent
from binlane.log.codec.transaction import XidEvent
from binlane.log.codec.types import ChecksumAlgorithm, EventType
from binlane.log.grouping.event_group import EventGroup, group_events
from binlane.log.grouping.inner import expanded
from binlane.log.grouping.placing import place, place_group
from binlane.log.grouping.raw import RawRun, raw_groups
from binlane.log.grouping.walk import walk
from binlane.log.kernels import layout
from binlane.log.kernels.load import is_compiled
from tests.fixture_sets import fixture_names
from tests.routed_files import definitions, outputs, routed, written

_SCOPES = (
    *("LOG ALL", "LOG(shop.t)", "IGNORE(shop.t)", "LOG(crm)", "LOG(shop)", "LOG(shop.a)"),
    *("LOG(shop, crm)", "LOG(shop), FOLLOW CASCADES", "LOG ALL, ROW_IMAGE=MINIMAL"),
)
_SAMPLED = {"my97_fk", "my97_txn", "my97_rows_query", "my97_compressed", "my97_ddl", "my97_xa"}
_SETS = [
    pytest.param(name, marks=() if name in _SAMPLED else pytest.mark.slow)
    for name in fixture_names("my97")
    if not name.endswith(("encrypted", "netstream", "bigrow", "gtid_off"))
]

pytestmark = pytest.mark.skipif(
    not is_compiled(("copying", "scan")), reason="the kernels are not compiled here"
)


def _compressed(name: str, directory: Path) -> tuple[str, ...]:
    """A recorded log with its transactions compressed, and each of them twice."""
    paths = written(name, directory / "in")
    routed(paths, directory / "packed", "LOG ALL, COMPRESS='ON'")
    files = sorted((directory / "packed" / "b1").glob("b1.0*"))
    twice = directory / "twice"
    twice.mkdir()
    made = []
    for path in files:
        out = twice / path.name
        out.write_bytes(_doubled(path.read_bytes()))
        made.append(str(out))
    return tuple(made)


def _doubled(data: bytes) -> bytes:
    """A file whose compressed groups come twice, the second time of another server, with other texts."""
    groups = list(group_events(walk([data], file="binlog"), file="binlog"))
    body = groups[0].events[0].body
    assert isinstance(body, FormatDescriptionEvent)
    out = bytearray(MAGIC)
    for group in groups:
        if group.is_control:
            out += place(group.events[0], len(out), body.format)
            continue
        out += place_group(group.events, len(out), body.format)
        if _payload(group) is not None:
            events = tuple(_of_another(event, body.format) for event in group.events)
            out += place_group(events, len(out), body.format)
    return bytes(out)


def _of_another(event: Event, format_: Format) -> Event:
    body = event.body
    if isinstance(body, MysqlGtidEvent):
        return replace(event, body=replace(body, source_id="11111111" + body.source_id[8:]))
    if not isinstance(body, TransactionPayloadEvent):
        return event
    plain = replace(format_, checksum=ChecksumAlgorithm.NONE)
    inner = tuple(expanded(event, format_))[1:]
    data = b"".join(encode_event(_with_other_values(one), plain) for one in inner)
    packed = zstandard.compress(data)
    made = replace(body, uncompressed_size=len(data), payload=packed, head=None)
    return replace(event, body=made)


def _with_other_values(event: Event) -> Event:
    """The same event of another transaction of its shape: with other literals, and another XID."""
    body = event.body
    if isinstance(body, RowsQueryEvent):
        text = re.sub(rb"(?<![0-9A-Za-z_.$@])[1-9](?![0-9A-Za-z_.$@])", b"234", body.query)
        return replace(event, body=replace(body, query=text))
    return (
        replace(event, body=replace(body, xid=body.xid + 1))
        if isinstance(body, XidEvent)
        else event
    )


def _payload(group: EventGroup) -> Event | None:
    kind = EventType.TRANSACTION_PAYLOAD
    return next((event for event in group.events if event.header.type_code == kind), None)


@pytest.mark.parametrize("name", _SETS)
@pytest.mark.parametrize("window_bytes", [300, 1 << 20])
def test_a_shape_gets_what_the_reference_gives_each(
    name: str, window_bytes: int, tmp_path: Path
) -> None:
    paths = _compressed(name, tmp_path)
    reference = routed(paths, tmp_path / "reference", *_SCOPES, uses_kernels=False)
    report = routed(paths, tmp_path / "spans", *_SCOPES, window_bytes=window_bytes)
    assert outputs(tmp_path / "spans") == outputs(tmp_path / "reference")
    assert report.counts == reference.counts
    assert report.notes == reference.notes


class _Here:
    """A binlog as the span router asks for it."""

    has_tables_info = False

    def __init__(self, memory: Memory) -> None:
        self.memory = memory


@pytest.mark.parametrize("scope", ["LOG(shop)", "LOG(crm)", "LOG(shop.a)"])
def test_no_payload_of_rows_is_for_the_reference(scope: str, tmp_path: Path) -> None:
    router = SpanRouter(definitions(scope), [NOTHING])
    packed, odd = 0, 0
    for path in _compressed("my97_txn", tmp_path):
        with closing(FileBytes(path)) as source:
            for item in raw_groups(source, file=path, name=path):
                if not isinstance(item, RawRun):
                    continue
                groups = RunGroups(item)
                assert router.read(groups)
                for_reference = router.odd_groups(item, [_Here(NOTHING)])  # type: ignore[list-item]  # all that is asked for
                for number in range(item.count):
                    event = _payload(item.group(number))
                    if event is not None and groups.payload(_last_event(item, number)) is not None:
                        packed += 1
                        odd += number in for_reference
    assert packed > 10
    assert not odd


def _last_event(run: RawRun, number: int) -> int:
    return int(run.groups[layout.GROUP_END, number]) - 1


def test_a_payload_that_is_cut_has_no_shape(tmp_path: Path) -> None:
    reader, bodies = PayloadReader(), []
    for path in _compressed("my97_txn", tmp_path):
        for group in group_events(walk([Path(path).read_bytes()], file=path), file=path):
            first = group.events[0].body
            if isinstance(first, FormatDescriptionEvent):
                format_ = first.format
            event = _payload(group)
            if event is not None and isinstance(event.body, TransactionPayloadEvent):
                bodies.append(event.body.encode(format_))
    shaped = [body for body in bodies if reader.read(body) is not None]
    assert shaped
    for cut in range(len(shaped[0])):
        assert reader.read(shaped[0][:cut]) is None
    assert reader.read(shaped[0] + b"\0") is None
