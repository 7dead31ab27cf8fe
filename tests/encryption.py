"""The servers' side of encryption: what tests need to make encrypted files."""

from __future__ import annotations

import hashlib

from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CBC, CTR, ECB

from binlane.log.codec.encryption import EventCipher, KeyRing
from binlane.log.grouping.walk import walk
from tests.fixture_sets import fixture_set


def keys_of(name: str) -> KeyRing:
    """The keys of a fixture set."""
    files = fixture_set(name).files
    return KeyRing.parse(files.get("keys.txt") or files["keyring"])


def encrypt_event(
    plain: bytes, position: int, *, key: bytes, nonce: bytes, cipher: EventCipher
) -> bytes:
    """One event as MariaDB writes it."""
    vector = nonce + position.to_bytes(4, "little")
    data = plain[4:9] + plain[:4] + plain[13:]
    if cipher is EventCipher.CTR:
        hidden = Cipher(AES(key), CTR(vector)).encryptor().update(data)
    else:
        whole = len(data) // 16 * 16
        mask = Cipher(AES(key), ECB()).encryptor().update(vector)
        hidden = Cipher(AES(key), CBC(vector)).encryptor().update(data[:whole])
        hidden += bytes(a ^ b for a, b in zip(data[whole:], mask, strict=False))
    return hidden[5:9] + hidden[:5] + plain[9:13] + hidden[9:]


def encrypt_log(
    plain: bytes, *, key: bytes, nonce: bytes = bytes(12), cipher: EventCipher = EventCipher.CBC
) -> bytes:
    """A whole file of MariaDB, plain behind its second event, a START_ENCRYPTION with `nonce`."""
    _, start, *hidden = walk([plain], file="plain")
    assert start.header.type_name == "START_ENCRYPTION"
    data = plain[: start.next_position]
    for event in hidden:
        at = event.position
        data += encrypt_event(
            plain[at : event.next_position], at, key=key, nonce=nonce, cipher=cipher
        )
    return data


def encrypt_file(plain: bytes, *, key_id: str, key: bytes, password: bytes) -> bytes:
    """A whole file of MySQL, encrypted with a file password of 32 bytes."""
    vector = bytes(range(16))
    sealed = Cipher(AES(key), CBC(vector)).encryptor().update(password)
    name = key_id.encode()
    fields = bytes((1, 1, len(name))) + name + b"\x02" + sealed + b"\x03" + vector
    secret = hashlib.sha512(password).digest()
    counter = secret[32:40] + bytes(8)
    hidden = Cipher(AES(secret[:32]), CTR(counter)).encryptor().update(plain)
    return (b"\xfdbin" + fields).ljust(512, b"\0") + hidden
