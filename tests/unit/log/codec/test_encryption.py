"""Key files of both flavors, and one event decrypted."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from binlane.errors import CodecError, ConfigError, UnsupportedError
from binlane.log.codec.encryption import (
    EventCipher,
    KeyRing,
    StartEncryptionEvent,
    mariadb_decryptor,
    mysql_decryptor,
)
from tests.encryption import encrypt_event, encrypt_file

KEY_ID = "MySQLReplicationKey_3e11fa47-71ca-11e1-9e33-c80aa9429562_1"
KEY = bytes(range(32))


def component(*elements: Mapping[str, object]) -> bytes:
    return json.dumps({"version": "1.0", "elements": elements}).encode()


def test_a_key_file_of_mariadb_has_an_id_and_a_key_a_line() -> None:
    data = (
        b"# the keys\n\n"
        b"1;" + KEY.hex().encode() + b"\n"
        b" 17 ; 00112233445566778899AABBCCDDEEFF # of 128 bits\r\n"
        b"18;" + KEY[:24].hex().encode()
    )
    ring = KeyRing.parse(data)
    assert ring.mariadb == {
        1: KEY,
        17: bytes.fromhex("00112233445566778899aabbccddeeff"),
        18: KEY[:24],
    }
    assert ring.mysql == {}


def test_a_keyring_of_mysql_has_elements() -> None:
    number = {"data_id": KEY_ID[:-2], "data_type": "AES", "data": "01" + "00" * 15}
    purged = {"data_id": f"{KEY_ID[:-2]}_last_purged", "data_type": "AES", "data": "01" + "00" * 15}
    other = {"data_id": "password_1", "data_type": "SECRET", "data": "61"}
    data = component(
        {"data_id": KEY_ID, "data_type": "AES", "data": KEY.hex()}, number, purged, other
    )
    assert KeyRing.parse(b"\n" + data) == KeyRing(mysql={KEY_ID: KEY})


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "holds no keys"),
        (b"# nothing\n", "holds no keys"),
        (b"1;00\n", "line 1 of the key file holds no key of 128, 192 or 256 bits"),
        (b"# x\nsecret\n", "line 2 of the key file is not `ID;HEXKEY`"),
        (b"\xff\xfe1", "no text"),
        (b'{"keys": []}', "no JSON of component_keyring_file"),
        (b'{"elements": 1}', "no JSON of component_keyring_file"),
        (b"{", "no JSON of component_keyring_file"),
        (
            component({"data_id": "a_1", "data_type": "AES", "data": "0g"}),
            "element a_1 of the key file holds no key",
        ),
        (
            component({"data_id": "a_1", "data_type": "AES", "data": None}),
            "element a_1 of the key file holds no key",
        ),
        (b"Salted__" + bytes(40), "itself encrypted with a password"),
        (b"Keyring file version:2.0", "old keyring_file plugin"),
    ],
)
def test_what_is_no_key_file_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        KeyRing.parse(data)
    assert caught.value.key == "--encryption-keys"
    assert caught.value.hint


def test_keys_stand_in_no_message() -> None:
    assert "secret" not in repr(KeyRing(mariadb={1: b"secret"}, mysql={"k": b"secret"}))
    with pytest.raises(ConfigError) as caught:
        KeyRing.parse(b"1;" + KEY.hex().encode() + b"ff")
    assert KEY.hex() not in str(caught.value)


@pytest.mark.parametrize("cipher", EventCipher)
@given(
    data=st.data(),
    key=st.sampled_from([KEY[:16], KEY[:24], KEY]),
    nonce=st.binary(min_size=12, max_size=12),
    position=st.integers(0, 2**32 - 1),
    content=st.binary(max_size=80),
)
def test_an_event_is_decrypted_as_it_was(
    cipher: EventCipher,
    data: st.DataObject,
    key: bytes,
    nonce: bytes,
    position: int,
    content: bytes,
) -> None:
    head = data.draw(st.binary(min_size=19, max_size=19))
    plain = head[:9] + (19 + len(content)).to_bytes(4, "little") + head[13:] + content
    hidden = encrypt_event(plain, position, key=key, nonce=nonce, cipher=cipher)
    start = StartEncryptionEvent(scheme=1, key_version=1, nonce=nonce)
    decrypt = mariadb_decryptor(start, KeyRing(mariadb={1: key}), cipher)
    assert decrypt(hidden, position) == plain
    # Beyond 4 GiB the position counts with its low 32 bits.
    assert decrypt(hidden, position + 2**32) == plain


def test_an_unknown_scheme_is_refused() -> None:
    start = StartEncryptionEvent(scheme=2, key_version=1, nonce=bytes(12))
    with pytest.raises(UnsupportedError, match="scheme 2"):
        mariadb_decryptor(start, None, EventCipher.CBC)


@given(plain=st.binary(max_size=100), cut=st.integers(0, 100))
def test_a_file_of_mysql_is_decrypted_in_pieces(plain: bytes, cut: int) -> None:
    data = encrypt_file(plain, key_id=KEY_ID, key=KEY, password=KEY[::-1])
    decrypt = mysql_decryptor(data[:512], KeyRing(mysql={KEY_ID: KEY}))
    hidden = data[512:]
    assert decrypt(hidden[:cut]) + decrypt(hidden[cut:]) == plain


@given(fields=st.binary(max_size=60))
def test_a_damaged_header_of_mysql_is_an_error_or_a_key_that_is_missing(fields: bytes) -> None:
    header = (b"\xfdbin\x01" + fields).ljust(512, b"\0")
    with pytest.raises(CodecError):
        mysql_decryptor(header, KeyRing())
