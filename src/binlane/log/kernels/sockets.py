"""The C library's calls for sockets, in kernels: compiled they are those functions themselves.

None blocks. A call that fails gives -1: whoever is handed the connection calls again and sees why.
"""

from __future__ import annotations

import os
import select
import struct
import sys
from typing import Any, Final

from llvmlite import ir
from numba.core import types

from binlane.log.kernels.memory import (
    Bytes,
    _compile_as,
    _insert_function,
    _intrinsic,
    _pointer,
)

_I8P: Final = ir.IntType(8).as_pointer()
_I32, _I64 = ir.IntType(32), ir.IntType(64)
_FLAGS: Final = 0x4000 | 0x40
"""MSG_NOSIGNAL and MSG_DONTWAIT."""
EVENT_SIZE: Final = 12 if sys.byteorder == "little" and os.uname().machine == "x86_64" else 16
EVENT_NUMBER: Final = EVENT_SIZE - 8
"""Bytes of an event of epoll, and the place of its file number."""


def receive(number: int, data: Bytes, start: int, length: int) -> int:
    """Receive up to `length` bytes from a socket; 0 at its end."""
    try:
        got = os.read(number, length)
    except OSError:
        return -1
    data[start : start + len(got)] = list(got)
    return len(got)


def send(number: int, data: Bytes, start: int, length: int) -> int:
    """Send bytes to a socket; gives the number of those that it took."""
    try:
        return os.write(number, data[start : start + length].tobytes())
    except OSError:
        return -1


def wait(number: int, events: Bytes, count: int) -> int:
    """Fetch up to `count` events of an epoll instance that are there now."""
    with select.epoll.fromfd(os.dup(number)) as epoll:
        found = epoll.poll(0, count)
    for index, (of, mask) in enumerate(found):
        at = index * EVENT_SIZE
        events[at : at + 4] = list(struct.pack("<I", mask))
        events[at + EVENT_NUMBER : at + EVENT_SIZE] = list(struct.pack("<q", of))
    return len(found)


def _transfer(name: str) -> Any:
    """An intrinsic that calls recv or send, which take the same arguments."""

    @_intrinsic
    def transfer(_typing: Any, number: Any, data: Any, start: Any, length: Any) -> Any:
        del number, start, length

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            pointer = _pointer(context, builder, signature.args[1], args[1], args[2])
            kind = ir.FunctionType(_I64, [_I32, _I8P, _I64, _I32])
            callee = _insert_function(builder.module, kind, name)
            flags = ir.Constant(_I32, _FLAGS)
            return builder.call(callee, [builder.trunc(args[0], _I32), pointer, args[3], flags])

        return types.int64(types.int64, data, types.int64, types.int64), codegen

    return transfer


_call_recv, _call_send = _transfer("recv"), _transfer("send")


@_intrinsic
def _call_epoll_wait(_typing: Any, number: Any, events: Any, count: Any) -> Any:
    del number, count

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = _pointer(context, builder, signature.args[1], args[1], ir.Constant(_I64, 0))
        kind = ir.FunctionType(_I32, [_I32, _I8P, _I32, _I32])
        callee = _insert_function(builder.module, kind, "epoll_wait")
        numbers = [builder.trunc(each, _I32) for each in (args[0], args[2])]
        found = builder.call(callee, [numbers[0], pointer, numbers[1], ir.Constant(_I32, 0)])
        return builder.sext(found, _I64)

    return types.int64(types.int64, events, types.int64), codegen


def _received(number: Any, data: Any, start: Any, length: Any) -> Any:
    return _call_recv(number, data, start, length)


def _sent(number: Any, data: Any, start: Any, length: Any) -> Any:
    return _call_send(number, data, start, length)


def _waited(number: Any, events: Any, count: Any) -> Any:
    return _call_epoll_wait(number, events, count)


_compile_as(receive, _received)
_compile_as(send, _sent)
_compile_as(wait, _waited)
