"""Hashes of passwords: those that servers keep, as they were read from their tables."""

from __future__ import annotations

from base64 import b64decode
from hashlib import sha256

import pytest

from binlane.log.codec.password_hashes import (
    caching_sha2_hash,
    ed25519_hash,
    hash_of,
    native_hash,
    old_hash,
    parsec_hash,
    sha256_hash,
)

SALT = bytes(range(40, 72))


# Of MariaDB 10.11.19 and 11.8.9: CREATE USER … IDENTIFIED VIA … USING PASSWORD(…).
@pytest.mark.parametrize(
    ("password", "expected"),
    [
        (b"y", "*7446F64EFCFB1294A6DE20CAE7E49C2377A9AA25"),
        (b"q", "*3FBEFEC33FD8E842761B011670846D73057E67BE"),
        (b"", ""),
    ],
)
def test_mysql_native_password(password: bytes, expected: str) -> None:
    assert native_hash(password) == expected


@pytest.mark.parametrize(
    ("password", "expected"),
    [
        (b"MARK29", "52843f946b100860"),
        (b"a b\tc", "7cd2b5942be28759"),
        (b"q", "606718496665bfba"),
        (b"", ""),
    ],
)
def test_mysql_old_password(password: bytes, expected: str) -> None:
    assert old_hash(password) == expected


@pytest.mark.parametrize(
    ("password", "expected"),
    [
        (b"q", "fNKnWYqDUKYh4hdC25kjP1ZSI2lya3rSkFCUQna2IkQ"),
        (b"MARK36", "v19DwaG0EGHW38KsUbGWMMnGg4SXuegHGvp/RXu/JME"),
        (b"", "4LH+dBF+G5W2CKTyId8xR3SyDqZoQjUNUVNxx8aWbG4"),
    ],
)
def test_ed25519(password: bytes, expected: str) -> None:
    assert ed25519_hash(password) == expected


def test_parsec() -> None:
    salt = b64decode("3aPm0H87QYA1x6kn//TV+IDT")
    expected = "P0:3aPm0H87QYA1x6kn//TV+IDT:rZEjiudNLTefmTJu6drOOW3EOsmyE/gwX0ZRCxYDW0I"
    assert parsec_hash(b"q", salt) == expected


def test_hashes_with_sha2_are_of_letters_and_say_how_often_they_were_made() -> None:
    found = caching_sha2_hash(b"x", SALT, 10_000)
    mark, rounds, rest = found[:3], found[3:6], found[6:]
    assert (mark, int(rounds, 16), rest[0], len(rest)) == ("$A$", 10, "$", 1 + 20 + 43)
    assert found.isascii()
    assert not set("'\\\"") & set(found)
    assert caching_sha2_hash(b"x", SALT) != caching_sha2_hash(b"x", sha256(SALT).digest())
    # Both plugins hash alike.
    assert sha256_hash(b"x", SALT).split("$")[3] == caching_sha2_hash(b"x", SALT)[-43:]
    assert (caching_sha2_hash(b"", SALT), sha256_hash(b"", SALT)) == ("", "")


def test_plugins_of_others_have_none() -> None:
    assert hash_of("MYSQL_native_password", b"q", SALT) == native_hash(b"q")
    assert hash_of("pam", b"q", SALT) is None
    assert hash_of("caching_sha2_password", b"q" * 1000, SALT) is None
