"""The rule about several engines, against the same rule written as the servers' masks."""

from __future__ import annotations

from itertools import product

import pytest

from binlane.statements.policy.engines import Access, access_class, is_mixed_unsafe

# Bits of the session: direct on, cache not empty, weaker isolation; a mask tells in which of the
# eight combinations a pair is unsafe. Written down from the servers' documentation of the pairs.
ANY = 0xFF
DIRECT_ON, DIRECT_OFF = 0xF0, 0x0F
CACHE_FULL = 0xCC
WEAKER = 0xAA
PAIRS = """
WRITES_TRANS       WRITES_NONTRANS      ANY
WRITES_TRANS       WRITES_TEMP_NONTRANS DIRECT_ON
WRITES_TRANS       READS_NONTRANS       ANY
WRITES_TRANS       READS_TEMP_NONTRANS  DIRECT_ON
WRITES_NONTRANS    WRITES_TEMP_TRANS    ANY
WRITES_NONTRANS    READS_TRANS          CACHE_FULL
WRITES_NONTRANS    READS_TEMP_TRANS     CACHE_FULL
WRITES_TEMP_TRANS  WRITES_TEMP_NONTRANS DIRECT_ON
WRITES_TEMP_TRANS  READS_NONTRANS       ANY
WRITES_TEMP_TRANS  READS_TEMP_NONTRANS  DIRECT_ON
WRITES_TEMP_NONTRANS READS_TRANS        DIRECT_ON&CACHE_FULL
WRITES_TEMP_NONTRANS READS_NONTRANS     DIRECT_OFF&CACHE_FULL
WRITES_TEMP_NONTRANS READS_TEMP_TRANS   DIRECT_ON&CACHE_FULL
"""
MASKS = {
    "ANY": ANY,
    "DIRECT_ON": DIRECT_ON,
    "CACHE_FULL": CACHE_FULL,
    "DIRECT_ON&CACHE_FULL": DIRECT_ON & CACHE_FULL,
    "DIRECT_OFF&CACHE_FULL": DIRECT_OFF & CACHE_FULL,
}


def mask_of(access: int) -> int:
    """In which combinations of the session a set of accesses is unsafe, in a transaction."""
    mask = 0
    for line in PAIRS.split("\n"):
        if line:
            first, second, name = line.split()
            pair = Access[first].value | Access[second].value
            if access & pair == pair:
                mask |= MASKS[name]
    return mask


@pytest.mark.rule("004:R-unsafe-nontransactional")
@pytest.mark.parametrize("access", range(256))
def test_every_set_of_accesses_in_every_session(access: int) -> None:
    reads_trans = access & Access.READS_TRANS.value
    writes_nontrans = access & (Access.WRITES_NONTRANS.value | Access.WRITES_TEMP_NONTRANS.value)
    always = WEAKER if reads_trans and writes_nontrans else 0
    for direct, full, weaker, in_transaction in product((False, True), repeat=4):
        bit = 1 << (direct * 4 + full * 2 + weaker)
        expected = bool((always | (mask_of(access) if in_transaction else 0)) & bit)
        found = is_mixed_unsafe(
            Access(access),
            is_in_transaction=in_transaction,
            is_direct=direct,
            is_cache_empty=not full,
            is_below_repeatable_read=weaker,
        )
        assert found == expected, (Access(access), direct, full, weaker, in_transaction)


def test_classes_of_tables() -> None:
    classes = {
        access_class(is_written=written, is_temporary=temporary, is_transactional=transactional)
        for written, temporary, transactional in product((False, True), repeat=3)
    }
    assert classes == set(Access)
