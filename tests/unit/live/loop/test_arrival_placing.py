"""Rows of tables that come in, piece by piece: what each leaves in the binlog, and what disturbs them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from binlane.binlogs.routing.arrival_groups import TRANSACTION_BYTES, ArrivedTable
from binlane.binlogs.routing.routed_group import BinlogPart
from binlane.binlogs.routing.routing_memory import TableBirth
from binlane.binlogs.routing.table_births import ComingTable, TableArrival
from binlane.binlogs.store.settings import StoreSettings
from binlane.binlogs.store.store import Store
from binlane.errors import CodecError
from binlane.live.loop.arrival_placing import ArrivalPlacing
from binlane.live.loop.outputs import Output
from binlane.log.codec.body import Body
from binlane.log.codec.event import Event, EventHeader
from binlane.log.codec.query import QueryEvent
from binlane.log.codec.rows import TableMapEvent, WriteRowsV1Event
from binlane.log.codec.transaction import GtidEvent
from binlane.log.codec.types import ColumnType, EventType, RowsFlag
from binlane.names import TableName
from binlane.positions import Gtid, GtidPosition
from binlane.statements.scope.definition import Definition
from binlane.statements.scope.scope import Scope
from binlane.statements.sql.servers import LoggingMode
from tests.groups import source_format

_ORDERS = TableName("shop", "orders")
_GTID = Gtid(0, 1, 9)


def _event(body: Body, kind: EventType) -> Event:
    header = EventHeader(
        timestamp=1, type_code=kind, server_id=1, length=0, next_position=0, flags=0
    )
    return Event(header, body)


def _statement(text: str) -> Event:
    body = QueryEvent(
        thread_id=1,
        execution_time=0,
        error_code=0,
        status_vars=b"",
        database=b"shop",
        query=text.encode(),
    )
    return _event(body, EventType.QUERY)


def _rows(count: int) -> Iterator[Event]:
    for _ in range(count):
        table_map = TableMapEvent(
            table_id=1,
            flags=1,
            database="shop",
            table="binlane_filling_1",
            column_types=bytes((ColumnType.LONG,)),
            metadata=b"",
            null_bits=b"\x00",
            optional_metadata=b"",
        )
        yield _event(table_map, EventType.TABLE_MAP)
        body = WriteRowsV1Event(
            table_id=1,
            flags=RowsFlag.STMT_END,
            extra=None,
            column_count=1,
            columns_present=b"\xff",
            columns_present_after=None,
            images=bytes(TRANSACTION_BYTES),
        )
        yield _event(body, EventType.WRITE_ROWS_V1)


def _unreadable() -> Iterator[Event]:
    yield from _rows(1)
    raise CodecError("the file is damaged")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path, StoreSettings()) as opened:
        yield opened


@pytest.fixture
def output(store: Store) -> Output:
    binlog = store.create_binlog(
        Definition(
            name="orders",
            scope=Scope(log_tables=frozenset((_ORDERS,))),
            logging_mode=LoggingMode.ROW,
            log_id=store.next_log_id(),
        ),
        start=GtidPosition.parse("0-1-8"),
        format_description=source_format(),
        server_id=1,
        timestamp=1_700_000_000,
    )
    return Output.of(binlog, frozenset())


def _placing(store: Store, output: Output, rows: Iterator[Event]) -> ArrivalPlacing:
    coming = ComingTable(birth=TableBirth(name=TableName("shop", "new")), new=_ORDERS)
    query = _statement("RENAME TABLE shop.binlane_coming_1 TO shop.orders").body
    assert isinstance(query, QueryEvent)
    made = _statement("CREATE TABLE shop.binlane_filling_1 (id INT)")
    first = GtidEvent(sequence=9, domain_id=0, flags=0, flags_extra=0, padding=bytes(5))
    return ArrivalPlacing(
        output,
        store.seeds,
        TableArrival(tables=(coming,), query=query),
        (_GTID, _event(first, EventType.GTID)),
        [ArrivedTable(coming, [made], rows)],
    )


def test_each_piece_is_there_and_the_statement_behind_the_last(
    store: Store, output: Output
) -> None:
    placing, sizes = _placing(store, output, _rows(2)), []
    while placing.goes_on:
        placing.place_piece()
        output.binlog.sync()
        sizes.append(output.binlog.end.position)
        assert str(output.taken) == "0-1-8"
    # DROP, CREATE, rows twice, RENAME; then that is known to be all.
    assert len(sizes) == len(set(sizes)) + 1 == 6
    assert max(b - a for a, b in pairwise(sizes)) < TRANSACTION_BYTES + 1000
    assert placing.is_done
    assert placing.is_whole
    for part in placing.rest(BinlogPart()):
        output.take(part)
    assert str(output.taken) == "0-1-9"
    (seeding,) = output.binlog.seedings
    assert (seeding.first, seeding.last) == (1, 5)
    assert output.counts.event_groups == 6


def test_it_waits_for_a_binlog_that_is_stopped(store: Store, output: Output) -> None:
    placing = _placing(store, output, _rows(1))
    placing.place_piece()
    output.stop()
    assert not placing.goes_on
    output.go_on(None, forgets_source=False)
    assert placing.goes_on


def test_it_ends_where_the_binlog_has_something_else_behind_the_last_piece(
    store: Store, output: Output
) -> None:
    placing = _placing(store, output, _rows(1))
    placing.place_piece()
    output.binlog.advance_to(GtidPosition.parse("0-1-20"))
    assert not placing.goes_on
    assert not placing.is_whole


def test_it_ends_where_the_binlog_was_read_anew(store: Store, output: Output) -> None:
    placing = _placing(store, output, _rows(1))
    placing.place_piece()
    output.binlog.sync(force=True)
    output.reopen(store.reopen_binlog("orders"))
    assert not placing.is_whole
    again = _placing(store, output, _rows(1))
    assert again.goes_on
    before, after = output.binlog.seedings
    assert (before.first, before.last) == (1, 1)
    assert after.first > before.end


def test_rows_that_cannot_be_read_again_are_told(store: Store, output: Output) -> None:
    placing = _placing(store, output, _unreadable())
    for _ in range(3):
        placing.place_piece()
    with pytest.raises(RuntimeError, match="cannot be read again: the file is damaged"):
        placing.place_piece()
    assert not placing.is_whole
    assert not placing.is_done
    assert "620000-" in str(output.binlog.reached)
