"""Encrypted binlogs of real servers, against the plain files that belong to them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice

import pytest

from binlane.errors import ChecksumError, CodecError, TruncatedError, UnsupportedError
from binlane.log.codec.encryption import EventCipher, KeyRing
from binlane.log.grouping.decryption import is_encrypted, plain_chunks
from binlane.log.grouping.walk import walk
from tests.encryption import encrypt_log, keys_of
from tests.fixture_sets import fixture_names, fixture_set

FILES = [
    (name, file)
    for name in ("md1011_encrypted", "my97_encrypted")
    for file in ("binlog.000001", "binlog.000002")
]


def pieces(data: bytes, length: int) -> Iterator[bytes]:
    return (data[at : at + length] for at in range(0, len(data), length))


@pytest.mark.parametrize(("name", "file"), FILES)
@pytest.mark.parametrize("length", [1, 13, 500, 1 << 20])
def test_the_plain_file_comes_out(name: str, file: str, length: int) -> None:
    files = fixture_set(name).files
    chunks = plain_chunks(pieces(files[file], length), file=file, keys=keys_of(name))
    assert b"".join(chunks) == files[f"{file}.decrypted"]


@pytest.mark.parametrize(("name", "file"), FILES)
def test_events_and_positions_are_those_of_the_server(name: str, file: str) -> None:
    fixture = fixture_set(name)
    events = list(walk([fixture.files[file]], file=file, keys=keys_of(name)))
    expected = [row["pos"] for row in fixture.events() if row["file"] == file]
    assert [event.position for event in events[: len(expected)]] == expected
    # The list was made before the server wrote its last events.
    unlisted = {event.header.type_name for event in events[len(expected) :]}
    assert unlisted <= {"BINLOG_CHECKPOINT", "STOP"}
    assert events == list(walk([fixture.files[f"{file}.decrypted"]], file=file))


@pytest.mark.parametrize(
    ("name", "events", "message", "hint"),
    [
        ("md1011_encrypted", 2, "encrypted by MariaDB from here on, with key 1", "file_key_manag"),
        ("my97_encrypted", 0, "by MySQL with the key MySQLReplicationKey_3e11fa47", "keyring"),
    ],
)
def test_without_its_key_a_file_is_refused_where_it_is_encrypted(
    name: str, events: int, message: str, hint: str
) -> None:
    log = walk([fixture_set(name).files["binlog.000001"]], file="f")
    assert len(list(islice(log, events))) == events
    with pytest.raises(UnsupportedError, match=message) as caught:
        next(log)
    assert caught.value.file == "f"
    assert "--encryption-keys FILE" in caught.value.hint
    assert hint in caught.value.hint


@pytest.mark.parametrize("name", ["md1011_encrypted", "my97_encrypted"])
def test_keys_without_the_one_needed_name_it_and_those_that_are_there(name: str) -> None:
    data = fixture_set(name).files["binlog.000001"]
    keys = KeyRing(mariadb={7: bytes(16)}, mysql={"MySQLReplicationKey_other_1": bytes(32)})
    with pytest.raises(UnsupportedError, match="lacks; it has key 7, MySQLReplicationKey_other_1"):
        list(walk([data], file="f", keys=keys))


def test_a_wrong_key_is_told_as_such() -> None:
    data = fixture_set("md1011_encrypted").files["binlog.000001"]
    with pytest.raises(UnsupportedError, match="does not open with key 1") as caught:
        list(walk([data], file="f", keys=KeyRing(mariadb={1: bytes(32)})))
    assert caught.value.position == 296
    fixture = fixture_set("my97_encrypted")
    (name,) = keys_of("my97_encrypted").mysql
    with pytest.raises(UnsupportedError, match="does not open with the key given") as caught:
        list(
            walk([fixture.files["binlog.000001"]], file="f", keys=KeyRing(mysql={name: bytes(32)}))
        )
    assert caught.value.position == 0


@pytest.mark.parametrize("cipher", EventCipher)
def test_both_ciphers_of_mariadb_are_told_apart_by_the_events(cipher: EventCipher) -> None:
    plain = fixture_set("md1011_encrypted").files["binlog.000001.decrypted"]
    key = bytes(range(16))
    start = list(walk([plain], file="f"))[1].body
    hidden = encrypt_log(plain, key=key, nonce=start.nonce, cipher=cipher)  # type: ignore[attr-defined]  # of StartEncryptionEvent
    assert hidden != plain
    keys = KeyRing(mariadb={1: key})
    assert b"".join(plain_chunks([hidden], file="f", keys=keys)) == plain


@pytest.mark.parametrize(("name", "file"), FILES)
def test_a_cut_file_ends_where_it_is_cut(name: str, file: str) -> None:
    fixture, keys = fixture_set(name), keys_of(name)
    data = fixture.files[file]
    plain = fixture.files[f"{file}.decrypted"]
    ends = [event.next_position for event in walk([plain], file="f")]
    header = len(data) - len(plain)
    for length in range(header + 5, len(data)):
        position = max(end for end in [4, *ends] if end <= length - header)
        if position == length - header:
            assert len(list(walk([data[:length]], file="f", keys=keys))) == sum(
                end <= position for end in ends
            )
            continue
        with pytest.raises(TruncatedError) as caught:
            list(walk([data[:length]], file="f", keys=keys))
        assert caught.value.position == position
    for length in range(min(header, 512)):
        with pytest.raises(CodecError) as refused:
            list(walk([data[:length]], file="f", keys=keys))
        assert refused.value.position == 0


def test_damage_in_an_encrypted_event_is_told_at_its_position() -> None:
    data = bytearray(fixture_set("md1011_encrypted").files["binlog.000001"])
    events = list(walk([bytes(data)], file="f", keys=keys_of("md1011_encrypted")))
    target = events[-2]
    data[target.position + 25] ^= 1
    with pytest.raises(ChecksumError) as caught:
        list(walk([bytes(data)], file="f", keys=keys_of("md1011_encrypted")))
    assert caught.value.position == target.position


@pytest.mark.parametrize(("name", "file"), FILES)
def test_a_flipped_bit_anywhere_is_an_error_in_its_event(name: str, file: str) -> None:
    fixture, keys = fixture_set(name), keys_of(name)
    data, plain = fixture.files[file], fixture.files[f"{file}.decrypted"]
    header = len(data) - len(plain)
    starts = [event.position for event in walk([plain], file="f")]
    for offset in range(header, len(data), 3):
        damaged = bytearray(data)
        damaged[offset] ^= 1 << offset % 8
        with pytest.raises(CodecError) as caught:
            list(walk([bytes(damaged)], file="f", keys=keys))
        assert caught.value.position in {0, *starts}
        assert caught.value.position <= offset - header


def test_whether_a_file_is_encrypted_is_told_by_its_first_bytes() -> None:
    for name in fixture_names():
        for file, data in fixture_set(name).binlogs:
            assert is_encrypted(data[:4096]) == name.endswith("_encrypted"), (name, file)
    assert not is_encrypted(fixture_set("md1011_encrypted").files["binlog.000001.decrypted"])


def test_the_fixture_keyring_holds_what_the_header_names() -> None:
    fixture = fixture_set("my97_encrypted")
    elements = json.loads(fixture.files["keyring"])["elements"]
    assert set(keys_of("my97_encrypted").mysql) < {element["data_id"] for element in elements}
