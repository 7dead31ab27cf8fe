"""COM_STMT_EXECUTE, and what the session tracker says."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from binlane.errors import CodecError, UnsupportedError
from binlane.log.codec.packets.execution import (
    DatetimeValue,
    DateValue,
    DecimalValue,
    Execution,
    TimeValue,
)
from binlane.log.codec.packets.flags import Capability
from binlane.log.codec.packets.session_state import SessionState
from binlane.log.codec.types import ColumnType

UNSIGNED = 0x8000
_BITS = {ColumnType.TINY: 8, ColumnType.SHORT: 16, ColumnType.LONG: 32, ColumnType.LONGLONG: 64}


def _integers(type_code: int, bits: int) -> st.SearchStrategy[tuple[int, Any]]:
    signed = st.integers(-(1 << bits - 1), (1 << bits - 1) - 1)
    return st.one_of(
        st.tuples(st.just(type_code), signed),
        st.tuples(st.just(type_code | UNSIGNED), st.integers(0, (1 << bits) - 1)),
    )


def _of(type_code: int, values: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[int, Any]]:
    return st.tuples(st.just(int(type_code)), values)


_BYTE = st.integers(0, 255)
_DATE = (st.integers(0, 65_535), _BYTE, _BYTE)
_CLOCK = (_BYTE, _BYTE, _BYTE, st.integers(0, (1 << 32) - 1))
PARAMETERS = st.one_of(
    *(_integers(int(type_code), bits) for type_code, bits in _BITS.items()),
    _of(ColumnType.DOUBLE, st.floats(allow_nan=False)),
    _of(ColumnType.FLOAT, st.floats(width=32, allow_nan=False)),
    _of(ColumnType.NEWDECIMAL, st.builds(DecimalValue, st.binary(max_size=300))),
    _of(ColumnType.VAR_STRING, st.binary(max_size=300)),
    _of(ColumnType.DATE, st.builds(DateValue, *_DATE)),
    _of(ColumnType.DATETIME, st.builds(DatetimeValue, *_DATE, *_CLOCK)),
    _of(
        ColumnType.TIME,
        st.builds(TimeValue, st.booleans(), st.integers(0, (1 << 32) - 1), *_CLOCK),
    ),
    _of(ColumnType.BLOB, st.none()),
)


@given(st.lists(PARAMETERS, max_size=20), st.booleans())
def test_round_trip(parameters: list[tuple[int, Any]], sends_types: bool) -> None:  # noqa: FBT001
    execution = Execution(
        statement_id=7,
        flags=1,
        types=[type_code for type_code, _ in parameters],
        values=[value for _, value in parameters],
        sends_types=sends_types or not parameters,
    )
    found = Execution.decode(
        execution.encode(),
        parameter_count=len(parameters),
        types=None if execution.sends_types else execution.types,
    )
    assert replace(found, types=list(found.types), values=list(found.values)) == execution


def test_short_forms_of_times() -> None:
    types = (ColumnType.DATETIME, ColumnType.DATETIME, ColumnType.TIME, ColumnType.DATE)
    head = Execution(statement_id=1, types=types, values=(None,) * 4).encode()
    head = head[:10] + b"\0" + head[11:]
    values = b"\x04\xe4\x07\x02\x1d" + b"\x07\xe4\x07\x02\x1d\x01\x02\x03" + b"\0" + b"\0"
    found = Execution.decode(head + values, parameter_count=4)
    assert found.values == [
        DatetimeValue(2020, 2, 29),
        DatetimeValue(2020, 2, 29, 1, 2, 3),
        TimeValue(),
        DateValue(),
    ]


def test_values_that_were_sent_before_are_not_there() -> None:
    types = (ColumnType.BLOB, ColumnType.TINY)
    execution = Execution(statement_id=1, types=types, values=(None, 5))
    for bits in (b"\0", b"\1"):
        payload = execution.encode()
        payload = payload[:10] + bits + payload[11:]
        found = Execution.decode(payload, parameter_count=2, given={0})
        assert found.values == [None, 5]


def test_attributes_are_left_out() -> None:
    payload = Execution(statement_id=1, flags=8).encode()
    payload += b"\x02\0\x01" + b"\x01\0\0" + b"\xfd\0\x05trace" + b"\x09" + b"\x03abc"
    capabilities = Capability.QUERY_ATTRIBUTES
    found = Execution.decode(payload, parameter_count=1, capabilities=capabilities)
    assert (found.types, found.values) == ([ColumnType.TINY], [9])
    found = Execution.decode(payload, parameter_count=0, capabilities=capabilities)
    assert found.values == []


def test_what_is_no_execution() -> None:
    with pytest.raises(CodecError, match="no STMT_EXECUTE"):
        Execution.decode(b"\x03" + bytes(9), parameter_count=0)
    with pytest.raises(CodecError, match="without their types"):
        Execution.decode(
            Execution(statement_id=1, types=(1,), values=(1,), sends_types=False).encode(),
            parameter_count=1,
        )
    unknown = Execution(statement_id=1, types=(ColumnType.GEOMETRY,), values=(None,)).encode()
    with pytest.raises(UnsupportedError, match="type 255"):
        Execution.decode(unknown[:10] + b"\0" + unknown[11:], parameter_count=1)


def test_float_is_the_double_of_its_value() -> None:
    execution = Execution(statement_id=1, types=(ColumnType.FLOAT,), values=(0.1,))
    found = Execution.decode(execution.encode(), parameter_count=1)
    (value,) = found.values
    assert isinstance(value, float)
    assert value != 0.1
    assert math.isclose(value, 0.1, rel_tol=1e-6)


@given(
    st.dictionaries(st.text(max_size=300), st.text(max_size=300), max_size=3),
    st.none() | st.text(max_size=10),
    st.text(max_size=300),
)
def test_session_state(variables: dict[str, str], database: str | None, gtids: str) -> None:
    state = SessionState(variables=variables, database=database, gtids=gtids)
    assert SessionState.decode(state.encode()) == state


def test_session_state_of_servers() -> None:
    # MariaDB has several variables in one entry; what the transaction does is skipped.
    state = b"\0\x0e" + b"\x01a\x011" + b"\x04long\x04text" + b"\x05\x09\x08T_______"
    found = SessionState.decode(state)
    assert found == SessionState(variables={"a": "1", "long": "text"})
    gtids = b"\x03\x09\0\x07uuid:42"
    assert SessionState.decode(gtids).gtids == "uuid:42"
    with pytest.raises(CodecError):
        SessionState.decode(state[:-1])
