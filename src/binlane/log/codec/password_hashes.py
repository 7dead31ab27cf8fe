"""Password hashes as servers store them, for each plugin that can make them from a password.

A hash is what `mysql.global_priv` and `mysql.user` hold and what statements take in the place of a
password. Salts are arguments.

Source: MariaDB 11.8, sql/password.c, plugin/auth_ed25519, plugin/auth_parsec; MySQL 9.7,
sql/auth/sha2_password.cc, mysys/crypt_genhash_impl.cc; U. Drepper, Unix crypt using SHA-256.
"""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

SALT_LENGTH: Final = 32
"""Bytes of a salt; plugins that take fewer take the first ones."""
LENGTH_MAX: Final = 256
"""Bytes of a password: MySQL takes no more, and a long one takes long to hash."""

_SHA2_SALT_LENGTH: Final = 20
_SHA2_ROUNDS_STEP: Final = 1000
SHA2_ROUNDS: Final = 5000
"""Rounds that every server with `caching_sha2_password` takes."""
_PARSEC_SALT_LENGTH: Final = 18
_PARSEC_ROUNDS: Final = 1024
_LETTERS: Final = "./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
# The order in which crypt writes the bytes of a digest, three by three.
_CRYPT_TRIPLES: Final = (
    *((0, 10, 20), (21, 1, 11), (12, 22, 2), (3, 13, 23), (24, 4, 14)),
    *((15, 25, 5), (6, 16, 26), (27, 7, 17), (18, 28, 8), (9, 19, 29)),
)


def native_hash(password: bytes) -> str:
    """Hash for `mysql_native_password`, as PASSWORD() gives it; the empty password has an empty one."""
    if not password:
        return ""
    return "*" + _sha1(_sha1(password)).hex().upper()


def old_hash(password: bytes) -> str:
    """Hash for `mysql_old_password`; the empty password has an empty one."""
    if not password:
        return ""
    first, second, added = 1345345333, 0x12345671, 7
    for byte in password:
        if byte in b" \t":
            continue
        first ^= (((first & 63) + added) * byte) + (first << 8)
        first &= 0xFFFFFFFFFFFFFFFF
        second += (second << 8) ^ first
        second &= 0xFFFFFFFFFFFFFFFF
        added += byte
    return f"{first & 0x7FFFFFFF:08x}{second & 0x7FFFFFFF:08x}"


def ed25519_hash(password: bytes) -> str:
    """Hash for MariaDB's `ed25519`: the public key whose secret one the password is."""
    return _base64(_public_key(password))


def parsec_hash(password: bytes, salt: bytes) -> str:
    """Return the hash of MariaDB's `parsec`: the public key of the pair derived from the password.

    Args:
        password: The password in the character set of whoever set it.
        salt: Random bytes, at least 18 of them.
    """
    salt = salt[:_PARSEC_SALT_LENGTH]
    secret = hashlib.pbkdf2_hmac("sha512", password, salt, _PARSEC_ROUNDS, _POINT_LENGTH)
    return f"P0:{_base64(salt)}:{_base64(_public_key(secret))}"


def caching_sha2_hash(password: bytes, salt: bytes, rounds: int = SHA2_ROUNDS) -> str:
    """Hash for `caching_sha2_password`; the empty password has an empty one.

    Args:
        password: The password as text in UTF-8.
        salt: Random bytes, at least 20 of them, of which seven bits each count.
        rounds: The rounds of the hash; thousands, as `caching_sha2_password_digest_rounds` says.
    """
    if not password:
        return ""
    letters = _sha2_salt(salt)
    digest = _sha256_crypt(password, letters, rounds)
    return f"$A${rounds // _SHA2_ROUNDS_STEP:03X}$" + letters.decode() + digest


def sha256_hash(password: bytes, salt: bytes) -> str:
    """Hash for `sha256_password`; the empty password has an empty one."""
    if not password:
        return ""
    letters = _sha2_salt(salt)
    return f"$5${letters.decode()}${_sha256_crypt(password, letters, SHA2_ROUNDS)}"


_PLUGINS: Final[Mapping[str, Callable[[bytes, bytes], str]]] = MappingProxyType(
    {
        "mysql_native_password": lambda password, _: native_hash(password),
        "mysql_old_password": lambda password, _: old_hash(password),
        "ed25519": lambda password, _: ed25519_hash(password),
        "parsec": parsec_hash,
        "caching_sha2_password": caching_sha2_hash,
        "sha256_password": sha256_hash,
    }
)


def hash_of(plugin: str, password: bytes, salt: bytes) -> str | None:
    """Return a server's hash of a password; None if that is not known, or the password is too long.

    Args:
        plugin: The plugin's name, in any case.
        password: The password as the server gets it.
        salt: Random bytes, `SALT_LENGTH` of them.
    """
    made = _PLUGINS.get(plugin.lower())
    return None if made is None or len(password) > LENGTH_MAX else made(password, salt)


def _sha1(data: bytes) -> bytes:
    return hashlib.sha1(data, usedforsecurity=False).digest()


def _base64(data: bytes) -> str:
    return b64encode(data).decode().rstrip("=")


def _sha2_salt(salt: bytes) -> bytes:
    """A salt of letters and digits, which no quotes and no character set can spoil."""
    return bytes(ord(_LETTERS[byte & 63]) for byte in salt[:_SHA2_SALT_LENGTH])


def _sha256_crypt(password: bytes, salt: bytes, rounds: int) -> str:
    def sha256(*parts: bytes) -> bytes:
        return hashlib.sha256(b"".join(parts)).digest()

    def filled(data: bytes, length: int) -> bytes:
        return (data * (length // len(data) + 1))[:length]

    length = len(password)
    other = sha256(password, salt, password)
    parts, bits = [password, salt, filled(other, length)], length
    while bits:
        parts.append(other if bits & 1 else password)
        bits >>= 1
    digest = sha256(*parts)
    secret = filled(sha256(password * length), length)
    seasoning = filled(sha256(salt * (16 + digest[0])), len(salt))
    for number in range(rounds):
        digest = sha256(
            secret if number & 1 else digest,
            seasoning if number % 3 else b"",
            secret if number % 7 else b"",
            digest if number & 1 else secret,
        )
    written = "".join(
        _written(digest[first] << 16 | digest[second] << 8 | digest[third], 4)
        for first, second, third in _CRYPT_TRIPLES
    )
    return written + _written(digest[31] << 8 | digest[30], 3)


def _written(number: int, count: int) -> str:
    return "".join(_LETTERS[number >> 6 * place & 63] for place in range(count))


# Ed25519, RFC 8032, section 5.1. A point is in extended homogeneous coordinates: X, Y, Z, T. That of
# Python's libraries takes secret keys of 32 bytes only; a password has any length.

_Point = tuple[int, int, int, int]
_POINT_LENGTH: Final = 32
_PRIME: Final = 2**255 - 19
_CURVE: Final = -121665 * pow(121666, -1, _PRIME) % _PRIME
_BASE_Y: Final = 4 * pow(5, -1, _PRIME) % _PRIME
_BASE_X: Final = 15112221349535400772501151409588531511454012693041857206046113283949847762202
_BASE: Final[_Point] = (_BASE_X, _BASE_Y, 1, _BASE_X * _BASE_Y % _PRIME)
_HIGHEST_BIT: Final = 1 << 254
_LOW_BITS: Final = 7


def _added(one: _Point, other: _Point) -> _Point:
    first = (one[1] - one[0]) * (other[1] - other[0]) % _PRIME
    second = (one[1] + one[0]) * (other[1] + other[0]) % _PRIME
    third = 2 * one[3] * other[3] * _CURVE % _PRIME
    fourth = 2 * one[2] * other[2] % _PRIME
    e, f, g, h = second - first, fourth - third, fourth + third, second + first
    return e * f % _PRIME, g * h % _PRIME, f * g % _PRIME, e * h % _PRIME


def _public_key(secret: bytes) -> bytes:
    half = int.from_bytes(hashlib.sha512(secret).digest()[:_POINT_LENGTH], "little")
    factor = half & (_HIGHEST_BIT - 1) & ~_LOW_BITS | _HIGHEST_BIT
    point, doubled = (0, 1, 1, 0), _BASE
    while factor:
        if factor & 1:
            point = _added(point, doubled)
        doubled = _added(doubled, doubled)
        factor >>= 1
    inverse = pow(point[2], -1, _PRIME)
    x, y = point[0] * inverse % _PRIME, point[1] * inverse % _PRIME
    return (y | (x & 1) << 255).to_bytes(_POINT_LENGTH, "little")
