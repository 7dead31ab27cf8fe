from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from binlane.errors import CodecError, TruncatedError, UnsupportedError
from binlane.log.codec.encryption import KeyRing, StartEncryptionEvent
from binlane.log.codec.format import MAGIC, MAGIC_ENCRYPTED
from binlane.log.codec.transaction import XidEvent
from binlane.log.grouping.decryption import is_encrypted, plain_chunks
from binlane.log.grouping.walk import walk
from tests.build import log
from tests.encryption import encrypt_file, encrypt_log

KEY = bytes(range(32))
KEYS = KeyRing(mariadb={1: KEY}, mysql={"k_1": KEY})
START = StartEncryptionEvent(scheme=1, key_version=1, nonce=bytes(12))
HEAD = log(START)
PLAIN = log(START, *(XidEvent(xid=number) for number in range(3)))


@given(data=st.binary(max_size=600), keys=st.sampled_from([None, KEYS]))
@pytest.mark.parametrize("prefix", [b"", MAGIC, MAGIC_ENCRYPTED, HEAD, HEAD[:-5]])
def test_any_bytes_pass_or_are_an_error(prefix: bytes, data: bytes, keys: KeyRing | None) -> None:
    file, plain = "f", prefix + data
    try:
        plain = b"".join(plain_chunks([prefix + data], file="f", keys=keys))
    except CodecError as error:
        file = str(error.file)
    assert file == "f"
    assert plain.startswith(prefix)
    assert len(plain) == len(prefix + data)


@given(cuts=st.lists(st.integers(0, 2000), max_size=6))
def test_pieces_of_any_size_give_the_same(cuts: list[int]) -> None:
    for data in (
        encrypt_log(PLAIN, key=KEY),
        encrypt_file(PLAIN, key_id="k_1", key=KEY, password=KEY),
    ):
        places = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
        parts = [data[a:b] for a, b in pairwise(places)]
        assert b"".join(plain_chunks(parts, file="f", keys=KEYS)) == PLAIN


def test_what_a_server_sends_to_replicas_has_a_start_encryption_but_is_plain() -> None:
    assert not is_encrypted(PLAIN)
    assert len(list(walk([PLAIN], file="f"))) == 5


def test_a_file_that_ends_behind_its_start_encryption_needs_no_key() -> None:
    assert len(list(walk([HEAD], file="f"))) == 2


def test_an_encrypted_event_whose_length_lies_is_told_by_its_length() -> None:
    data = bytearray(encrypt_log(PLAIN, key=KEY))
    second = len(HEAD) + 31
    data[second + 9 : second + 13] = (7).to_bytes(4, "little")
    with pytest.raises(CodecError, match="says it is 7 bytes long") as caught:
        list(walk([bytes(data)], file="f", keys=KEYS))
    assert caught.value.position == second
    data[second + 9 : second + 13] = (5000).to_bytes(4, "little")
    with pytest.raises(TruncatedError, match="5000 bytes are announced"):
        list(walk([bytes(data)], file="f", keys=KEYS))


def test_an_unknown_version_of_mysqls_encryption_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="version 2 of MySQL's encryption"):
        list(walk([(MAGIC_ENCRYPTED + b"\x02").ljust(512, b"\0")], file="f", keys=KEYS))
