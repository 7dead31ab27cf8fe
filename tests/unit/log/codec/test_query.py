"""Plain, extended and compressed QUERY events."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from binlane.errors import CodecError
from binlane.log.codec.buffer import Reader
from binlane.log.codec.compression import compress_record
from binlane.log.codec.event import Event, decode_event, encode_event
from binlane.log.codec.query import QueryCompressedEvent, QueryEvent
from binlane.log.codec.types import EventType
from binlane.log.grouping.walk import walk
from tests.build import FORMAT, PLAIN_FORMAT, event, format_description, log
from tests.fixture_sets import fixture_set

QUERY = QueryEvent(
    thread_id=5,
    execution_time=1,
    error_code=1062,
    status_vars=bytes((0, 1, 0, 0, 0)),
    database=b"shop",
    query=b"INSERT INTO t VALUES (1)",
)
EXTENDED = format_description(lengths={EventType.QUERY: 17})


def test_a_plain_query_has_its_database_and_a_nul() -> None:
    data = QUERY.encode(FORMAT)
    assert data.hex() == (
        "050000000100000004260405000001000000" + b"shop\0".hex() + QUERY.query.hex()
    )
    assert QueryEvent.decode(Reader(data), FORMAT) == QUERY


def test_a_missing_nul_is_damage() -> None:
    data = QUERY.encode(FORMAT).replace(b"shop\0", b"shopx")
    with pytest.raises(CodecError, match="no NUL stands after the database"):
        QueryEvent.decode(Reader(data), FORMAT)


@pytest.mark.rule("003:header-fields")
@pytest.mark.rule("003:no-trailing-zero")
def test_an_extended_query_has_two_more_lengths_and_no_nul() -> None:
    extended = replace(QUERY, tables_info=b"\0\1t")
    data = extended.encode(EXTENDED.format)
    assert data.hex() == (
        "05000000"
        "01000000"
        "04"
        "2604"
        "0500"
        "1800"
        "0300"
        "0001000000" + b"shop".hex() + QUERY.query.hex() + "000174"
    )
    assert QueryEvent.decode(Reader(data), EXTENDED.format) == extended


@pytest.mark.rule("003:told-by-format-description")
def test_only_the_format_description_tells_the_two_forms_apart() -> None:
    extended = replace(QUERY, tables_info=b"")
    for head, body in ((format_description(), QUERY), (EXTENDED, extended)):
        *_, read = walk([log(body, head=head)], file="f")
        assert read.body == body
    odd = format_description(lengths={EventType.QUERY: 11})
    with pytest.raises(CodecError, match="post-headers of 11 bytes are unknown"):
        list(walk([log(QUERY, head=odd)], file="f"))


@pytest.mark.rule("003:example")
@pytest.mark.parametrize("name", ["synth_wl40_seed", "synth_wl40_crc"])
def test_the_seeds_example_is_read_and_written_back(name: str) -> None:
    fixture = fixture_set(name)
    ((file, data),) = fixture.binlogs
    format_ = None
    queries: dict[int, Event] = {}
    for read in walk([data], file=file):
        format_ = format_ or getattr(read.body, "format", None)
        if isinstance(read.body, QueryEvent):
            assert encode_event(read, format_) == data[read.position : read.next_position]
            queries[read.position] = read
    expected = {item["pos"]: item for item in fixture.expected if item["type"] == EventType.QUERY}
    assert queries.keys() == expected.keys()
    for position, item in expected.items():
        body = queries[position].body
        assert isinstance(body, QueryEvent)
        assert (body.database.decode(), body.query.decode()) == (item["db"], item["query"])
        tables = b"".join(
            bytes((len(part.encode()),)) + part.encode() for pair in item["tables"] for part in pair
        )
        assert body.tables_info == tables


def test_a_compressed_query_is_read_plain_and_written_as_it_was() -> None:
    record = b"\x82\0" + compress_record(QUERY.query)[1:]
    stored = replace(QUERY, query=record).encode(PLAIN_FORMAT)
    body = QueryCompressedEvent.decode(Reader(stored), PLAIN_FORMAT)
    assert (body.query, body.record) == (QUERY.query, record)
    assert body.encode(PLAIN_FORMAT) == stored


def test_a_changed_compressed_query_is_compressed_anew() -> None:
    made = event(QueryCompressedEvent(**{f.name: getattr(QUERY, f.name) for f in fields(QUERY)}))
    read = decode_event(encode_event(made, FORMAT), FORMAT)
    assert isinstance(read.body, QueryCompressedEvent)
    assert read.body.query == QUERY.query
    changed = replace(read, body=replace(read.body, query=b"other"))
    again = decode_event(encode_event(changed, FORMAT), FORMAT)
    assert isinstance(again.body, QueryCompressedEvent)
    assert again.body.query == b"other"


@pytest.mark.parametrize(
    "info, what, at",
    [
        (b"\0", "ends inside a name", 0),
        (b"\4shop", "ends inside a name", 0),
        (b"\0\1t\0\2t", "ends inside a name", 3),
        (b"\0\1t\0\0", "names a table by no name", 3),
        (b"\377\377", "ends inside a name", 0),
    ],
)
def test_tables_info_that_is_no_list_of_tables_is_damage(info: bytes, what: str, at: int) -> None:
    good = replace(QUERY, tables_info=b"\0\1t\4shop\1s").encode(EXTENDED.format)
    assert QueryEvent.decode(Reader(good), EXTENDED.format).tables == (("", "t"), ("shop", "s"))
    data = replace(QUERY, tables_info=info).encode(EXTENDED.format)
    with pytest.raises(CodecError, match=what) as caught:
        QueryEvent.decode(Reader(data), EXTENDED.format)
    assert caught.value.offset == len(data) - len(info) + at
