"""Values of prepared statements that are read as those before: the same texts as of values read anew."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from binlane.live.gateway.judge import ClientStatement, TextReading
from binlane.live.gateway.prepared_statements import PreparedStatements
from binlane.live.gateway.value_texts import LogStyle
from binlane.log.codec.packets.execution import UNSIGNED, Execution, Value
from binlane.log.codec.packets.flags import Capability, Command
from binlane.log.codec.types import ColumnType, Flavor
from binlane.statements.sql.servers import Dialect

_READING = TextReading(Dialect(flavor="mariadb"), "utf8mb4")
_STYLE = LogStyle(Flavor.MARIADB, "utf8mb4", no_backslash_escapes=False)
_BITS = {ColumnType.TINY: 8, ColumnType.SHORT: 16, ColumnType.LONG: 32, ColumnType.LONGLONG: 64}


def _value(type_code: int) -> st.SearchStrategy[Value]:
    bits = _BITS.get(ColumnType(type_code & ~UNSIGNED))
    if bits is None:
        return st.binary(max_size=12) | st.binary(min_size=249, max_size=253)
    least = 0 if type_code & UNSIGNED else -(1 << bits - 1)
    most = (1 << bits) - 1 if type_code & UNSIGNED else (1 << bits - 1) - 1
    return st.integers(least, most)


_TYPES = st.lists(
    st.sampled_from(
        [*_BITS, *(each | UNSIGNED for each in _BITS), ColumnType.VAR_STRING, ColumnType.BLOB]
    ),
    min_size=1,
    max_size=9,
)


def _added(count: int) -> PreparedStatements:
    found = PreparedStatements(Capability.PROTOCOL_41)
    text = f"INSERT INTO t VALUES ({', '.join('?' * count)})"
    found.add(1, text, count, _READING, Flavor.MARIADB)
    return found


def _execution(types: Sequence[int], values: Sequence[Value], *, sends_types: bool) -> bytes:
    return Execution(statement_id=1, types=types, values=values, sends_types=sends_types).encode()


@given(st.data())
def test_texts_are_those_of_values_that_are_read_anew(data: st.DataObject) -> None:
    types = data.draw(_TYPES)
    once, known = _added(len(types)), _added(len(types))
    first = _execution(types, data.draw(st.tuples(*map(_value, types))), sends_types=True)
    for each in (once, known):
        each.executed(Command.STMT_EXECUTE, first, _STYLE)
    assert known.executed_again(first, _READING) is None
    known.know(first, _READING, _STYLE)
    for _ in range(3):
        values = data.draw(st.tuples(*[st.none() | _value(one) for one in types]))
        payload = _execution(types, values, sends_types=data.draw(st.booleans()))
        (expected,) = once.executed(Command.STMT_EXECUTE, payload, _STYLE)
        found = known.executed_again(payload, _READING)
        is_short = all(not isinstance(one, bytes) or len(one) < 251 for one in values)
        assert found == ((expected,) if None not in values and is_short else None)
        cut = payload[: data.draw(st.integers(1, len(payload) - 1))]
        assert known.executed_again(cut, _READING) is None


def test_what_differs_is_read_anew() -> None:
    known = _added(1)
    types = (ColumnType.TINY,)
    first = _execution(types, (1,), sends_types=True)
    again = _execution(types, (2,), sends_types=False)
    told = (ClientStatement("INSERT INTO t VALUES (2)", is_prepared=True),)
    known.executed(Command.STMT_EXECUTE, first, _STYLE)
    known.know(first, _READING, _STYLE)
    assert known.executed_again(again, _READING) == told
    assert known.executed_again(again, None) is None
    assert known.executed_again(again, _READING._replace(character_set="latin1")) is None
    other = _execution((ColumnType.SHORT,), (2,), sends_types=True)
    assert known.executed_again(other, _READING) is None
    known.add_long_data(1, 0, b"x")
    assert known.executed_again(again, _READING) is None
    known.reset(1)
    assert known.executed_again(again, _READING) == told
    known.executed(Command.STMT_EXECUTE, other, _STYLE)
    assert known.executed_again(again, _READING) is None
    known.close(1)
    assert known.executed_again(first, _READING) is None


def test_values_that_count_rows_and_others_are_read_anew() -> None:
    known = PreparedStatements(Capability.PROTOCOL_41)
    known.add(1, "DELETE FROM t LIMIT ?", 1, _READING, Flavor.MARIADB)
    known.add(2, "DELETE FROM t WHERE a = ?", 1, _READING, Flavor.MARIADB)
    counts = _execution((ColumnType.TINY,), (1,), sends_types=True)
    of_double = Execution(statement_id=2, types=(ColumnType.DOUBLE,), values=(0.5,)).encode()
    for payload in (counts, of_double):
        known.executed(Command.STMT_EXECUTE, payload, _STYLE)
        known.know(payload, _READING, _STYLE)
        assert known.executed_again(payload, _READING) is None


def test_executions_pass_with_the_types_that_were_told_last() -> None:
    known = _added(1)
    first = _execution((ColumnType.LONG,), (1,), sends_types=True)
    known.executed(Command.STMT_EXECUTE, first, _STYLE)
    known.let_pass(first)
    assert known.passing.find(1) is not None
    known.executed(Command.STMT_EXECUTE, first, _STYLE)
    assert known.passing.find(1) is not None
    other = _execution((ColumnType.VAR_STRING,), (b"abc",), sends_types=True)
    known.executed(Command.STMT_EXECUTE, other, _STYLE)
    assert known.passing.find(1) is None, "three letters are as long as a number, with their length"


@pytest.mark.parametrize("count", [1, 9])
def test_the_source_is_told_types_of_an_execution_that_was_not_sent(count: int) -> None:
    known, types, values = _added(count), (ColumnType.LONG,) * count, tuple(range(count))
    told = _execution(types, values, sends_types=True)
    again = _execution(types, values, sends_types=False)
    known.executed(Command.STMT_EXECUTE, told, _STYLE)
    assert known.with_types(again) == again
    assert not known.unsent(told)
    assert known.with_types(again) == told
    assert known.with_types(again) == again, "it knows them by now"
    known.unsent(again)
    assert known.with_types(told) == told


def test_types_stand_with_names_where_attributes_may_come() -> None:
    known = PreparedStatements(Capability.PROTOCOL_41 | Capability.QUERY_ATTRIBUTES)
    known.add(1, "INSERT INTO t VALUES (?, ?)", 2, _READING, Flavor.MYSQL)
    head, values = b"\x17\1\0\0\0\0\1\0\0\0\2\0", b"\7\0\0\0\3abc"
    told = head + b"\1\3\0\0\xfd\0\0" + values
    (statement,) = known.executed(Command.STMT_EXECUTE, told, _STYLE)
    assert statement.text == "INSERT INTO t VALUES (7, 'abc')"
    known.unsent(told)
    assert known.with_types(head + b"\0" + values) == told


def test_values_that_came_before_an_execution_are_still_at_the_source() -> None:
    known = _added(1)
    payload = _execution((ColumnType.BLOB,), (None,), sends_types=True)
    known.add_long_data(1, 0, b"x")
    known.executed(Command.STMT_EXECUTE, payload, _STYLE)
    assert known.unsent(payload)
    assert not known.unsent(payload)
