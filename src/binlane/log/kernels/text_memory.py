"""Writing in kernels that make text: several bytes at once, and the search for control characters.

Like `memory`, only kernels import this module: compiled, each function is a few instructions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic, overload

Bytes = npt.NDArray[np.uint8]

LANES = 32
QUOTE, BACKSLASH = 0x27, 0x5C
_I8, _I16, _I32, _I64 = ir.IntType(8), ir.IntType(16), ir.IntType(32), ir.IntType(64)


def store_u16(target: Bytes, to: int, value: int) -> None:
    """The low two bytes of a number, little-endian."""
    target[to : to + 2] = np.frombuffer((int(value) & 0xFFFF).to_bytes(2, "little"), np.uint8)


def store_u64(target: Bytes, to: int, value: int) -> None:
    """All eight bytes of a number, little-endian."""
    data = (int(value) & 0xFFFFFFFFFFFFFFFF).to_bytes(8, "little")
    target[to : to + 8] = np.frombuffer(data, np.uint8)


def copy_long(target: Bytes, to: int, data: Bytes, start: int, length: int) -> None:
    """Copy `length` bytes; compiled, up to 63 bytes behind them are overwritten, too."""
    target[to : to + length] = data[start : start + length]


def copy_lanes(target: Bytes, to: int, data: Bytes, start: int) -> int:
    """Copy 32 bytes; bit i of the result is set if byte i is below a blank."""
    lanes = data[start : start + LANES]
    target[to : to + LANES] = lanes
    return sum(1 << lane for lane, byte in enumerate(lanes.tolist()) if byte < 0x20)


def copy_literal_lanes(target: Bytes, to: int, data: Bytes, start: int) -> int:
    """Copy as `copy_lanes`; bit i of the result is also set where a quote or a backslash is."""
    lanes = data[start : start + LANES]
    mask = copy_lanes(target, to, data, start)
    quotes = (QUOTE, BACKSLASH)
    return mask | sum(1 << lane for lane, byte in enumerate(lanes.tolist()) if byte in quotes)


def first_bit(mask: int) -> int:
    """Number of the lowest bit that is set in a number that is not 0."""
    return (mask & -mask).bit_length() - 1


def _pointer(context: Any, builder: Any, array_type: Any, array: Any, offset: Any) -> Any:
    data = context.make_array(array_type)(context, builder, array).data
    return builder.gep(data, [offset])


def _store(bits: int) -> Any:
    @intrinsic
    def store(_typing: Any, target: Any, to: Any, value: Any) -> Any:
        del to, value

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            kind = ir.IntType(bits)
            pointer = _pointer(context, builder, signature.args[0], args[0], args[1])
            value = args[2] if bits == 64 else builder.trunc(args[2], kind)
            builder.store(value, builder.bitcast(pointer, kind.as_pointer()), align=1)
            return context.get_dummy_value()

        return types.void(target, types.int64, types.int64), codegen

    return store


_store16, _store64 = _store(16), _store(64)


def _copy64_intrinsic(_typing: Any, target: Any, to: Any, data: Any, start: Any) -> Any:
    del to, start

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        wide = ir.VectorType(_I8, 64).as_pointer()
        source = _pointer(context, builder, signature.args[2], args[2], args[3])
        value = builder.load(builder.bitcast(source, wide), align=1)
        sink = _pointer(context, builder, signature.args[0], args[0], args[1])
        builder.store(value, builder.bitcast(sink, wide), align=1)
        return context.get_dummy_value()

    return types.void(target, types.int64, data, types.int64), codegen


def _copy(target: Any, to: Any, data: Any, start: Any, length: Any) -> None:
    done = 0
    while done < length:
        _copy64(target, to + done, data, start + done)
        done += 64


def _copying(quotes: tuple[int, ...]) -> Any:
    """Return an intrinsic that copies lanes and finds blanks' ends and some characters."""

    @intrinsic
    def copy(_typing: Any, target: Any, to: Any, data: Any, start: Any) -> Any:
        del to, start

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            wide = ir.VectorType(_I8, LANES)
            source = _pointer(context, builder, signature.args[2], args[2], args[3])
            value = builder.load(builder.bitcast(source, wide.as_pointer()), align=1)
            sink = _pointer(context, builder, signature.args[0], args[0], args[1])
            builder.store(value, builder.bitcast(sink, wide.as_pointer()), align=1)
            found = builder.icmp_unsigned("<", value, ir.Constant(wide, [0x20] * LANES))
            for quote in quotes:
                same = builder.icmp_unsigned("==", value, ir.Constant(wide, [quote] * LANES))
                found = builder.or_(found, same)
            return builder.zext(builder.bitcast(found, _I32), _I64)

        return types.int64(target, types.int64, data, types.int64), codegen

    return copy


def _first_bit_intrinsic(_typing: Any, mask: Any) -> Any:
    del mask

    def codegen(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.int64), codegen


_copy_lanes, _copy_literal_lanes = _copying(()), _copying((QUOTE, BACKSLASH))
_copy64: Any = intrinsic(_copy64_intrinsic)
_first_bit: Any = intrinsic(_first_bit_intrinsic)


def _compile_as(plain: Callable[..., Any], implementation: Callable[..., Any]) -> None:
    """Make compiled kernels run `implementation` in place of `plain`."""

    def choose(*_types: Any) -> Callable[..., Any]:
        return implementation

    overload(plain, strict=False)(choose)


_compile_as(store_u16, lambda target, to, value: _store16(target, to, value))  # noqa: PLW0108  # numba needs it
_compile_as(store_u64, lambda target, to, value: _store64(target, to, value))  # noqa: PLW0108  # numba needs it
_compile_as(copy_long, _copy)
_compile_as(copy_lanes, lambda target, to, data, start: _copy_lanes(target, to, data, start))  # noqa: PLW0108  # numba needs it
_compile_as(
    copy_literal_lanes,
    lambda target, to, data, start: _copy_literal_lanes(target, to, data, start),  # noqa: PLW0108  # numba needs it
)
_compile_as(first_bit, lambda mask: _first_bit(mask))  # noqa: PLW0108  # numba needs it
