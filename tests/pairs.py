"""Events of a table of two numbers, `shop.t (id, n)`: a row is a pair."""

from __future__ import annotations

from binlane.log.codec.query import QueryEvent
from binlane.log.codec.transaction import GtidEvent, XidEvent
from binlane.log.codec.types import ColumnType
from binlane.statements.sql.logged_objects import LoggedObjects
from tests import build

TABLE = build.table_map(ColumnType.LONG, ColumnType.LONG)
ONE, TWO = b"\xfc\x01\x00\x00\x00\x0a\x00\x00\x00", b"\xfc\x02\x00\x00\x00\x14\x00\x00\x00"
XID = XidEvent(xid=1)


def catalog() -> LoggedObjects:
    made = LoggedObjects()
    made.load("CREATE TABLE shop.t (id INT, n INT)")
    return made


def query(text: bytes) -> QueryEvent:
    return QueryEvent(
        thread_id=1,
        execution_time=0,
        error_code=0,
        status_vars=b"",
        database=b"shop",
        query=text,
    )


def gtid(sequence: int, flags: int = 0) -> GtidEvent:
    return GtidEvent(sequence=sequence, domain_id=0, flags=flags)
