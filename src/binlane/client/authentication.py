"""Answers to the servers' challenges: passwords are proven, not sent.

Source: MySQL and MariaDB client documentation of `mysql_native_password` and
`caching_sha2_password`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from hashlib import sha1, sha256
from itertools import cycle
from types import MappingProxyType
from typing import Final

NATIVE_PASSWORD: Final = "mysql_native_password"  # noqa: S105 - a plugin's name
CACHING_SHA2_PASSWORD: Final = "caching_sha2_password"  # noqa: S105 - a plugin's name


def _native_password(password: bytes, scramble: bytes) -> bytes:
    stage_1 = _sha1(password)
    return _xor(stage_1, _sha1(scramble + _sha1(stage_1)))


def _caching_sha2_password(password: bytes, scramble: bytes) -> bytes:
    stage_1 = sha256(password).digest()
    return _xor(stage_1, sha256(sha256(stage_1).digest() + scramble).digest())


_PLUGINS: Final[Mapping[str, Callable[[bytes, bytes], bytes]]] = MappingProxyType(
    {NATIVE_PASSWORD: _native_password, CACHING_SHA2_PASSWORD: _caching_sha2_password}
)
KNOWN_PLUGINS: Final = tuple(_PLUGINS)


def prove(plugin: str, password: str, scramble: bytes) -> bytes:
    """The answer to a challenge.

    Args:
        plugin: One of the names in `KNOWN_PLUGINS`.
        password: Empty where the account has none.
        scramble: The challenge of 20 bytes.
    """
    return _PLUGINS[plugin](password.encode(), scramble) if password else b""


def obscure(password: bytes, scramble: bytes) -> bytes:
    """The password as `caching_sha2_password` wants it before it is sealed with the server's key."""
    return _xor(password + b"\0", scramble)


def _sha1(data: bytes) -> bytes:
    return sha1(data, usedforsecurity=False).digest()


def _xor(data: bytes, key: bytes) -> bytes:
    return bytes(left ^ right for left, right in zip(data, cycle(key), strict=False))
