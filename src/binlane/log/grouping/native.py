"""Addresses of C functions that kernels call."""

from __future__ import annotations

import ctypes
import zlib
from functools import cache

from binlane.errors import UnsupportedError


@cache
def crc32_address() -> int:
    """The address of a `uint32 crc32(uint32 value, void *data, size_t length)`.

    It is isal's, which is several times faster than zlib's.

    Raises:
        UnsupportedError: If neither library offers its function.
    """
    from isal import isal_zlib  # noqa: PLC0415 - only the fast path needs it

    # Some builds of Python have zlib in themselves, not in a file of its own.
    zlib_file: str | None = getattr(zlib, "__file__", None)
    for name, symbol in ((isal_zlib.__file__, "crc32_gzip_refl"), (zlib_file, "crc32_z")):
        try:
            function = getattr(ctypes.CDLL(name), symbol)
        except (AttributeError, OSError):
            continue
        address = ctypes.cast(function, ctypes.c_void_p).value
        if address:
            return address
    raise UnsupportedError(
        "neither isal nor zlib offers its CRC32 function, which checks events",
        hint="install isal from its wheel: pip install --force-reinstall isal",
    )
