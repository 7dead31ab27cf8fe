"""Kernels by themselves, in each form that they have, against what Python says."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from binlane.errors import CodecError
from binlane.log.codec.numbers import decimal_from_bytes, decimal_length
from binlane.log.kernels import layout
from binlane.log.kernels.load import Build, builds, kernel_modules, running

# Numba needs minutes to compile all of them; what it makes ahead of time is the same code.
BUILDS = [build for build in builds() if build is not Build.JIT]
PADDING = bytes(64)


@pytest.fixture(params=BUILDS, ids=lambda build: build.value)
def kernels(request: pytest.FixtureRequest) -> Iterator[Any]:
    with running(request.param) as found:
        yield found


def buffer(data: bytes) -> Any:
    return np.frombuffer(data + PADDING, np.uint8).copy()


def test_the_modules_that_list_kernels() -> None:
    assert {"convert", "rows", "scan", "strings"} <= set(kernel_modules())


def test_a_kernel_that_is_none(kernels: Any) -> None:
    with pytest.raises(AttributeError, match="no kernel is called nothing"):
        _ = kernels.nothing


@given(texts=st.lists(st.binary(max_size=6) | st.text(max_size=4).map(str.encode), max_size=6))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_utf8_is_what_python_takes_for_it(kernels: Any, texts: list[bytes]) -> None:
    offsets = np.cumsum([0, *map(len, texts)]).astype(np.int32)
    found = kernels.is_utf8(buffer(b"".join(texts)), offsets)
    assert bool(found) == all(map(is_utf8, texts))


def is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


@given(data=st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_decimals_are_those_of_the_codec(kernels: Any, data: st.DataObject) -> None:
    precision = data.draw(st.integers(1, 38))
    scale = data.draw(st.integers(0, min(30, precision)))
    length = decimal_length(precision, scale)
    stored = data.draw(st.binary(min_size=length, max_size=length))
    positions = np.zeros(1, np.int32)
    out = np.zeros(4, np.int32)
    status = kernels.decimals(buffer(stored), positions, precision, scale, out)
    try:
        expected = decimal_from_bytes(stored, precision, scale)
    except CodecError:
        assert status == layout.CONVERT_DAMAGED
        return
    assert status == 0
    value = int.from_bytes(out.tobytes(), "little", signed=True)
    assert value == int(expected.scaleb(scale, None) if precision < 28 else _scaled(expected))
    if precision <= 18:
        short = np.zeros(2, np.int64)
        assert kernels.short_decimals(buffer(stored), positions, precision, scale, short) == 0
        assert short.tobytes() == out.tobytes()


def _scaled(value: Decimal) -> int:
    sign, digits, _ = value.as_tuple()
    number = int("".join(map(str, digits)))
    return -number if sign else number


@pytest.mark.parametrize(
    "text",
    ["0001-01-01", "1970-01-01", "1969-12-31", "2000-02-29", "9999-12-31", "1900-03-01"],
)
def test_dates_count_from_1970(kernels: Any, text: str) -> None:
    year, month, day = map(int, text.split("-"))
    stored = (year << 9 | month << 5 | day).to_bytes(3, "little")
    positions, out = np.zeros(1, np.int32), np.zeros(1, np.int32)
    assert kernels.dates(buffer(stored), positions, out) == 0
    assert out.astype("datetime64[D]")[0] == np.datetime64(text)


@pytest.mark.parametrize("date", [(0, 0, 0), (2023, 2, 29), (1900, 2, 29), (2024, 13, 1)])
def test_what_is_no_date_is_null(kernels: Any, date: tuple[int, int, int]) -> None:
    year, month, day = date
    stored = (year << 9 | month << 5 | day).to_bytes(3, "little")
    positions, out = np.zeros(1, np.int32), np.zeros(1, np.int32)
    assert kernels.dates(buffer(stored), positions, out) == 1
    assert positions[0] == layout.NULL


@given(values=st.lists(st.booleans(), max_size=40))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_validity_is_a_bit_a_value(kernels: Any, values: list[bool]) -> None:
    positions = np.array([7 if value else layout.NULL for value in values], np.int32)
    bits = np.zeros((len(values) + 7) // 8, np.uint8)
    assert kernels.validity(positions, bits) == values.count(False)
    assert np.unpackbits(bits, bitorder="little")[: len(values)].tolist() == list(map(int, values))
