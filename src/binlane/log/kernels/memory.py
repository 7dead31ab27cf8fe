"""Reading and copying bytes in kernels: one machine instruction when compiled, plain Python else.

Only kernels import this module, since it imports numba. Compiled, a read takes up to 8 bytes from
its position on and a copy up to 15 bytes more than it was asked for: hence the padding.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic, overload

Bytes = npt.NDArray[np.uint8]

_intrinsic: Callable[[Callable[..., Any]], Any] = intrinsic
_insert_function: Callable[..., Any] = cgutils.get_or_insert_function
_alloca_once: Callable[..., Any] = cgutils.alloca_once
_I8, _I32, _I64 = ir.IntType(8), ir.IntType(32), ir.IntType(64)


def load_u16(data: Bytes, position: int) -> int:
    """Two bytes, little-endian, unsigned."""
    return int.from_bytes(data[position : position + 2].tobytes(), "little")


def load_u24(data: Bytes, position: int) -> int:
    """Three bytes, little-endian, unsigned."""
    return int.from_bytes(data[position : position + 3].tobytes(), "little")


def load_u32(data: Bytes, position: int) -> int:
    """Four bytes, little-endian, unsigned."""
    return int.from_bytes(data[position : position + 4].tobytes(), "little")


def load_u48(data: Bytes, position: int) -> int:
    """Six bytes, little-endian, unsigned."""
    return int.from_bytes(data[position : position + 6].tobytes(), "little")


def load_i64(data: Bytes, position: int) -> int:
    """Eight bytes, little-endian, signed."""
    return int.from_bytes(data[position : position + 8].tobytes(), "little", signed=True)


def load_le(data: Bytes, position: int, length: int) -> int:
    """`length` bytes, 0 to 8, little-endian; unsigned, but for 8 bytes, which are signed."""
    return int.from_bytes(
        data[position : position + length].tobytes(), "little", signed=length == 8
    )


def load_be(data: Bytes, position: int, length: int) -> int:
    """`length` bytes, 0 to 8, big-endian; unsigned, but for 8 bytes, which are signed."""
    return int.from_bytes(data[position : position + length].tobytes(), "big", signed=length == 8)


def copy_bytes(target: Bytes, to: int, data: Bytes, start: int, length: int) -> None:
    """Copy `length` bytes; compiled, up to 15 bytes behind them are overwritten, too."""
    target[to : to + length] = data[start : start + length]


def is_equal(left: Bytes, at: int, right: Bytes, start: int, length: int) -> bool:
    """True if `length` bytes are the same."""
    return bool((left[at : at + length] == right[start : start + length]).all())


def prefetch(data: Bytes, position: int) -> None:
    """Ask for the 64 bytes around a position, which may lie outside, to be in the cache soon."""


def crc32(function: int, data: Bytes, start: int, length: int) -> int:
    """CRC32 of some bytes by the C function `uint32 f(uint32, void *, size_t)` at an address."""
    del function  # which does the same
    return zlib.crc32(data[start : start + length].tobytes())


def _pointer(context: Any, builder: Any, array_type: Any, array: Any, offset: Any) -> Any:
    data = context.make_array(array_type)(context, builder, array).data
    return builder.gep(data, [offset])


def _load(bits: int, *, swap: bool = False) -> Any:
    """An intrinsic that reads so many bits, unaligned, as an unsigned number of 64 bits."""

    @_intrinsic
    def load(_typing: Any, data: Any, position: Any) -> Any:
        del position

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            pointer = _pointer(context, builder, signature.args[0], args[0], args[1])
            typed = builder.bitcast(pointer, ir.IntType(bits).as_pointer())
            value = builder.load(typed, align=1)
            if swap:
                value = builder.bswap(value)
            return value if bits == 64 else builder.zext(value, _I64)

        return types.int64(data, types.int64), codegen

    return load


_load16, _load32, _load64 = _load(16), _load(32), _load(64)
_load64_swapped = _load(64, swap=True)


@_intrinsic
def _shift_right(_typing: Any, value: Any, count: Any) -> Any:
    """Shift right without the sign: zeros come in from the left."""
    del value, count

    def codegen(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.lshr(args[0], args[1])

    return types.int64(types.int64, types.int64), codegen


@_intrinsic
def _copy16(_typing: Any, target: Any, to: Any, data: Any, start: Any) -> Any:
    del to, start

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        wide = ir.VectorType(_I8, 16).as_pointer()
        source = _pointer(context, builder, signature.args[2], args[2], args[3])
        value = builder.load(builder.bitcast(source, wide), align=1)
        sink = _pointer(context, builder, signature.args[0], args[0], args[1])
        builder.store(value, builder.bitcast(sink, wide), align=1)
        return context.get_dummy_value()

    return types.void(target, types.int64, data, types.int64), codegen


@_intrinsic
def _prefetch(_typing: Any, data: Any, position: Any) -> Any:
    del position

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = _pointer(context, builder, signature.args[0], args[0], args[1])
        kind = ir.FunctionType(ir.VoidType(), [pointer.type, _I32, _I32, _I32])
        name = f"llvm.prefetch.{pointer.type.intrinsic_name}"
        callee = _insert_function(builder.module, kind, name)
        builder.call(callee, [pointer, *(ir.Constant(_I32, each) for each in (0, 3, 1))])
        return context.get_dummy_value()

    return types.void(data, types.int64), codegen


@_intrinsic
def _call_crc32(_typing: Any, function: Any, data: Any, start: Any, length: Any) -> Any:
    del function, start, length

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = _pointer(context, builder, signature.args[1], args[1], args[2])
        kind = ir.FunctionType(_I32, [_I32, pointer.type, _I64])
        callee = builder.inttoptr(args[0], kind.as_pointer())
        value = builder.call(callee, [ir.Constant(_I32, 0), pointer, args[3]])
        return builder.zext(value, _I64)

    return types.int64(types.int64, data, types.int64, types.int64), codegen


def _copy(target: Any, to: Any, data: Any, start: Any, length: Any) -> None:
    done = 0
    while done < length:
        _copy16(target, to + done, data, start + done)
        done += 16


def _compare(left: Any, at: Any, right: Any, start: Any, length: Any) -> bool:
    done = 0
    while done + 8 <= length:
        if _load64(left, at + done) != _load64(right, start + done):
            return False
        done += 8
    while done < length:
        if left[at + done] != right[start + done]:
            return False
        done += 1
    return True


def _two(data: Any, position: Any) -> Any:
    return _load16(data, position)


def _four(data: Any, position: Any) -> Any:
    return _load32(data, position)


def _eight(data: Any, position: Any) -> Any:
    return _load64(data, position)


def _checksum(function: Any, data: Any, start: Any, length: Any) -> Any:
    return _call_crc32(function, data, start, length)


def _ahead(data: Any, position: Any) -> None:
    _prefetch(data, position)


def _little(data: Any, position: Any, length: Any) -> Any:
    value = _load64(data, position)
    return value if length == 8 else value & ((1 << (8 * length)) - 1)


def _big(data: Any, position: Any, length: Any) -> Any:
    if length == 0:
        return 0
    return _shift_right(_load64_swapped(data, position), 64 - 8 * length)


def _compile_as(plain: Callable[..., Any], implementation: Callable[..., Any]) -> None:
    """Make compiled kernels run `implementation` in place of `plain`."""

    def choose(*_types: Any) -> Callable[..., Any]:
        return implementation

    overload(plain, strict=False)(choose)


_compile_as(load_u16, _two)
_compile_as(load_u24, lambda data, position: _load32(data, position) & 0xFFFFFF)
_compile_as(load_u32, _four)
_compile_as(load_u48, lambda data, position: _load64(data, position) & 0xFFFFFFFFFFFF)
_compile_as(load_i64, _eight)
_compile_as(load_le, _little)
_compile_as(load_be, _big)
_compile_as(copy_bytes, _copy)
_compile_as(is_equal, _compare)
_compile_as(crc32, _checksum)
_compile_as(prefetch, _ahead)
