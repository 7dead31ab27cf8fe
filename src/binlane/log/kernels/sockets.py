"""The C library's calls for sockets, in kernels: compiled they are those functions themselves.

Only `wait` blocks, where it is told to, and other threads may run meanwhile. A call that fails gives -1: whoever
is handed the connection calls again and sees why.
"""

from __future__ import annotations

import os
import select
import struct
import sys
import time
from typing import Any, Final

from llvmlite import ir
from numba.core import types

from binlane.log.kernels.memory import (
    Bytes,
    _alloca_once,
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
_NS_OF_MS: Final = 1_000_000


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


def wait(number: int, events: Bytes, count: int, timeout_ms: int) -> int:
    """Fetch up to `count` events of an epoll instance, for which it waits up to a time; below 0 without end."""
    with select.epoll.fromfd(os.dup(number)) as epoll:
        found = epoll.poll(-1 if timeout_ms < 0 else timeout_ms / 1000, count)
    for index, (of, mask) in enumerate(found):
        at = index * EVENT_SIZE
        events[at : at + 4] = list(struct.pack("<I", mask))
        events[at + EVENT_NUMBER : at + EVENT_SIZE] = list(struct.pack("<q", of))
    return len(found)


def clock_ms() -> int:
    """Give the time of a clock that only runs forward, in milliseconds."""
    return time.monotonic_ns() // _NS_OF_MS


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
def _call_epoll_wait(_typing: Any, number: Any, events: Any, count: Any, timeout: Any) -> Any:
    del number, count, timeout

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = _pointer(context, builder, signature.args[1], args[1], ir.Constant(_I64, 0))
        kind = ir.FunctionType(_I32, [_I32, _I8P, _I32, _I32])
        callee = _insert_function(builder.module, kind, "epoll_wait")
        number, count, timeout = (builder.trunc(args[at], _I32) for at in (0, 2, 3))
        found = builder.call(callee, [number, pointer, count, timeout])
        return builder.sext(found, _I64)

    return types.int64(types.int64, events, types.int64, types.int64), codegen


@_intrinsic
def _let_others_run(_typing: Any) -> Any:
    """Let go of the interpreter; gives what is needed to take it again."""

    def codegen(_context: Any, builder: Any, _signature: Any, _args: Any) -> Any:
        callee = _insert_function(builder.module, ir.FunctionType(_I8P, []), "PyEval_SaveThread")
        return builder.ptrtoint(builder.call(callee, []), _I64)

    return types.int64(), codegen


@_intrinsic
def _run_again(_typing: Any, state: Any) -> Any:
    """Take the interpreter again."""
    del state

    def codegen(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        kind = ir.FunctionType(ir.VoidType(), [_I8P])
        callee = _insert_function(builder.module, kind, "PyEval_RestoreThread")
        builder.call(callee, [builder.inttoptr(args[0], _I8P)])
        return args[0]

    return types.int64(types.int64), codegen


@_intrinsic
def _call_clock(_typing: Any) -> Any:
    def codegen(_context: Any, builder: Any, _signature: Any, _args: Any) -> Any:
        # A structure of seconds and nanoseconds.
        place = _alloca_once(builder, ir.ArrayType(_I64, 2))
        kind = ir.FunctionType(_I32, [_I32, _I8P])
        callee = _insert_function(builder.module, kind, "clock_gettime")
        clock = ir.Constant(_I32, time.CLOCK_MONOTONIC)
        builder.call(callee, [clock, builder.bitcast(place, _I8P)])
        seconds, nanoseconds = (
            builder.load(builder.gep(place, [ir.Constant(_I32, 0), ir.Constant(_I32, at)]))
            for at in (0, 1)
        )
        whole = builder.mul(seconds, ir.Constant(_I64, 1000))
        return builder.add(whole, builder.sdiv(nanoseconds, ir.Constant(_I64, _NS_OF_MS)))

    return types.int64(), codegen


def _received(number: Any, data: Any, start: Any, length: Any) -> Any:
    return _call_recv(number, data, start, length)


def _sent(number: Any, data: Any, start: Any, length: Any) -> Any:
    return _call_send(number, data, start, length)


def _waited(number: Any, events: Any, count: Any, timeout_ms: Any) -> Any:
    if not timeout_ms:
        return _call_epoll_wait(number, events, count, 0)
    state = _let_others_run()
    found = _call_epoll_wait(number, events, count, timeout_ms)
    _run_again(state)
    return found


def _clock_ms() -> Any:
    return _call_clock()


_compile_as(receive, _received)
_compile_as(send, _sent)
_compile_as(wait, _waited)
_compile_as(clock_ms, _clock_ms)
