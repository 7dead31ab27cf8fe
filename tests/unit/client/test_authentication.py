from __future__ import annotations

from hashlib import sha256

import pytest

from binlane.client.authentication import (
    CACHING_SHA2_PASSWORD,
    KNOWN_PLUGINS,
    NATIVE_PASSWORD,
    obscure,
    prove,
)


def test_the_native_password_as_a_real_client_proves_it() -> None:
    # Challenge and answer of a PyMySQL session with the password "secret" on MariaDB 10.11.19.
    scramble = bytes.fromhex("255a786c345e5d373a5c447c6567544f6d574d5c")
    answer = bytes.fromhex("4c472649687f1e77ddef560143b3d0f02a2544d5")
    assert prove(NATIVE_PASSWORD, "secret", scramble) == answer


def test_the_server_can_undo_a_proof_of_caching_sha2_password() -> None:
    # The server knows SHA256(SHA256(password)) and must come to SHA256(password).
    scramble = bytes(range(20))
    stage_1 = sha256(b"secret").digest()
    stored = sha256(stage_1).digest()
    mask = sha256(stored + scramble).digest()
    proof = prove(CACHING_SHA2_PASSWORD, "secret", scramble)
    assert bytes(a ^ b for a, b in zip(proof, mask, strict=True)) == stage_1


@pytest.mark.parametrize("plugin", KNOWN_PLUGINS)
def test_no_password_needs_no_proof(plugin: str) -> None:
    assert prove(plugin, "", bytes(20)) == b""


def test_a_password_is_obscured_with_its_end() -> None:
    scramble = bytes(range(1, 21))
    hidden = obscure(b"a" * 25, scramble)
    assert len(hidden) == 26
    key = (scramble * 2)[:26]
    assert bytes(a ^ b for a, b in zip(hidden, key, strict=True)) == b"a" * 25 + b"\0"
