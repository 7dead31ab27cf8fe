"""What holds of the codec for any bytes, any chunks and any bodies."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import fields
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from zstandard import ZstdCompressor

from binlane.errors import CodecError
from binlane.log.codec.body import Body
from binlane.log.codec.buffer import Reader
from binlane.log.codec.columns import Column, decode_rows, value_decoder
from binlane.log.codec.compression import decompress_column
from binlane.log.codec.control import FormatDescriptionEvent
from binlane.log.codec.event import decode_event, encode_event
from binlane.log.codec.json_binary import JsonDocument, decode_json
from binlane.log.codec.json_diff import apply_diffs, decode_diffs, parse_path
from binlane.log.codec.payload import PayloadCompression, TransactionPayloadEvent
from binlane.log.codec.registry import BODIES, REFUSED, OpaqueEvent
from binlane.log.codec.rows import RowsEvent
from binlane.log.codec.status_vars import StatusVar, decode_status_vars, encode_status_vars
from binlane.log.codec.table_metadata import primary_key, table_columns
from binlane.log.codec.types import ColumnType, Flavor
from binlane.log.codec.varints import (
    read_signed_varint,
    read_varint,
    write_signed_varint,
    write_varint,
)
from binlane.log.grouping.event_group import group_events
from binlane.log.grouping.flavors import NEVER_IN
from binlane.log.grouping.inner import expanded
from binlane.log.grouping.walk import walk
from binlane.positions import GtidRun, GtidSet, MysqlGtid
from tests.build import FORMAT, PLAIN_FORMAT, event, log, rows, table_map
from tests.fixture_sets import fixture_set
from tests.strategies import any_body, bodies, gtid_runs, status_vars, u64

REAL = fixture_set("md1011_live_copy").binlogs[0][1]
ROUND_TRIPPED = sorted(
    {body for body in BODIES.values() if body is not FormatDescriptionEvent},
    key=lambda body: body.__name__,
)


@pytest.mark.parametrize("kind", ROUND_TRIPPED)
@given(data=st.data())
def test_a_body_of_any_type_comes_back_as_it_was(kind: type[Body], data: st.DataObject) -> None:
    body = data.draw(bodies(kind))
    for format_ in (FORMAT, PLAIN_FORMAT):
        encoded = encode_event(event(body), format_)
        again = decode_event(encoded, format_)
        assert encode_event(again, format_) == encoded
        assert plain(again.body) == plain(body)


def plain(body: Any) -> dict[str, object]:
    """Fields, without the forms as written that only decoding knows."""
    return {
        item.name: getattr(body, item.name)
        for item in fields(body)
        if item.name not in {"record", "head"}
    }


@given(code=st.sampled_from(sorted(set(range(256)) - {*BODIES, *REFUSED})), body=st.binary())
def test_an_unknown_event_is_kept_as_it_is(code: int, body: bytes) -> None:
    encoded = encode_event(event(OpaqueEvent(data=body), type_code=code), FORMAT)
    again = decode_event(encoded, FORMAT)
    assert again.body == OpaqueEvent(data=body)
    assert encode_event(again, FORMAT) == encoded


@given(data=st.binary(max_size=200), code=st.integers(0, 255))
def test_any_bytes_are_an_event_or_an_error(data: bytes, code: int) -> None:
    encoded = encode_event(event(OpaqueEvent(data=data), type_code=code), PLAIN_FORMAT)
    with suppress(CodecError):
        decode_event(encoded, PLAIN_FORMAT)
    with suppress(CodecError):
        decode_event(data, PLAIN_FORMAT)


@given(data=st.binary(max_size=400), keep=st.integers(0, len(REAL)))
def test_any_file_is_events_or_an_error(data: bytes, keep: int) -> None:
    with suppress(CodecError):
        list(walk([REAL[:keep] + data], file="f"))


@given(cuts=st.lists(st.integers(0, len(REAL)), max_size=30))
def test_chunks_make_no_difference(cuts: list[int]) -> None:
    edges = [0, *sorted(cuts), len(REAL)]
    chunks = [REAL[start:end] for start, end in pairwise(edges)]
    assert list(walk(chunks, file="f")) == list(walk([REAL], file="f"))


def is_of_mariadb(body: Body) -> bool:
    return event(body).header.type_code not in NEVER_IN[Flavor.MARIADB]


@given(made=st.lists(any_body().filter(is_of_mariadb), max_size=12))
def test_grouping_keeps_every_event_in_order(made: list[Body]) -> None:
    events = list(walk([log(*made)], file="f"))
    assert len(events) == len(made) + 1
    groups = group_events(events, file="f")
    assert [item for group in groups for item in group.events] == events


@given(variables=status_vars())
def test_status_variables_come_back_as_they_were(variables: tuple[StatusVar, ...]) -> None:
    assert decode_status_vars(encode_status_vars(variables)) == variables


@given(data=st.binary(max_size=60))
def test_any_status_bytes_are_variables_or_an_error(data: bytes) -> None:
    with suppress(CodecError):
        assert encode_status_vars(decode_status_vars(data)) == data


@given(
    types=st.binary(max_size=12),
    metadata=st.binary(max_size=24),
    optional=st.binary(max_size=40),
    images=st.binary(max_size=200),
    kind=st.sampled_from([body for body in ROUND_TRIPPED if issubclass(body, RowsEvent)]),
    flavor=st.sampled_from(Flavor),
)
def test_any_table_and_images_are_rows_or_an_error(
    types: bytes,
    metadata: bytes,
    optional: bytes,
    images: bytes,
    kind: type[RowsEvent],
    flavor: Flavor,
) -> None:
    described = table_map(*types, metadata=metadata, optional_metadata=optional)
    with suppress(CodecError):
        primary_key(described)
        columns = table_columns(described, flavor=flavor)
        for before, after in decode_rows(rows(len(types), images, kind=kind), columns):
            assert len(columns) in {len(image) for image in (before, after) if image is not None}


@given(
    column_type=st.sampled_from(ColumnType),
    metadata=st.integers(0, 65535),
    images=st.binary(max_size=60),
    collation_id=st.none() | st.integers(0, 3400),
)
def test_any_value_of_any_type_is_decoded_or_an_error(
    column_type: ColumnType, metadata: int, images: bytes, collation_id: int | None
) -> None:
    column = Column(
        index=0,
        type=column_type,
        metadata=metadata,
        is_nullable=True,
        collation_id=collation_id,
    )
    with suppress(CodecError):
        value_decoder(column)
        list(decode_rows(rows(1, images), [column]))


@given(data=st.binary(max_size=100))
def test_any_json_is_a_document_or_an_error(data: bytes) -> None:
    with suppress(CodecError):
        str(decode_json(data))


@given(data=st.binary(max_size=100))
def test_any_compressed_column_is_a_value_or_an_error(data: bytes) -> None:
    with suppress(CodecError):
        decompress_column(data)


@given(data=st.binary(max_size=100))
def test_any_json_diffs_are_diffs_or_an_error(data: bytes) -> None:
    with suppress(CodecError):
        apply_diffs(JsonDocument({"a": [1, 2, {"b": None}]}), decode_diffs(data).diffs)


@given(path=st.text(st.sampled_from('$.[]"\\\\ab0 '), max_size=12))
def test_any_path_has_legs_or_is_an_error(path: str) -> None:
    with suppress(CodecError):
        assert all(isinstance(leg, str | int) for leg in parse_path(path))


@given(
    data=st.binary(max_size=120), size=st.integers(0, 300), compression=st.sampled_from([0, 255])
)
def test_any_payload_is_events_or_an_error(data: bytes, size: int, compression: int) -> None:
    if compression == PayloadCompression.ZSTD:
        data = ZstdCompressor().compress(data)
    body = TransactionPayloadEvent(compression=compression, uncompressed_size=size, payload=data)
    with suppress(CodecError):
        list(expanded(event(body), PLAIN_FORMAT))


@given(value=u64)
def test_varints_come_back_as_they_were(value: int) -> None:
    assert read_varint(Reader(write_varint(value))) == value
    number = value - 2**63
    assert read_signed_varint(Reader(write_signed_varint(number))) == number


@given(runs=st.lists(gtid_runs(tagged=True) | gtid_runs(tagged=False), max_size=5))
def test_gtid_sets_read_their_own_text(runs: list[GtidRun]) -> None:
    gtid_set = GtidSet.of(runs)
    assert GtidSet.parse(str(gtid_set)) == gtid_set
    assert gtid_set.union(gtid_set) == gtid_set
    for run in runs:
        for first, last in run.intervals:
            assert MysqlGtid(run.source_id, first, run.tag) in gtid_set
            assert MysqlGtid(run.source_id, last, run.tag) in gtid_set
