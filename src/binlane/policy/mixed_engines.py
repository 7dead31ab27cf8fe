"""The rule about statements that touch both transactional and other tables.

Theory: a statement's tables fall in eight classes: read or written, temporary or not,
transactional (T) or not (N); a write implies the read. Some pairs of classes are unsafe, depending
on whether earlier changes wait in the transaction cache, whether
`binlog_direct_non_transactional_updates` is on, and on the isolation level. The servers keep this
as a table of 256 masks; here it is the list of pairs that this table is made from.

Source: sql_lex.cc, `binlog_unsafe_map` of MariaDB 10.11 and MySQL 9.7.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Flag, auto
from typing import Final


class Access(Flag):
    """Classes of tables that a statement accesses."""

    READS_TRANS = auto()
    READS_NONTRANS = auto()
    READS_TEMP_TRANS = auto()
    READS_TEMP_NONTRANS = auto()
    WRITES_TRANS = auto()
    WRITES_NONTRANS = auto()
    WRITES_TEMP_TRANS = auto()
    WRITES_TEMP_NONTRANS = auto()


NOTHING: Final = Access(0)


def access_class(*, is_written: bool, is_temporary: bool, is_transactional: bool) -> Access:
    """The class of one table."""
    if is_written:
        if is_temporary:
            return Access.WRITES_TEMP_TRANS if is_transactional else Access.WRITES_TEMP_NONTRANS
        return Access.WRITES_TRANS if is_transactional else Access.WRITES_NONTRANS
    if is_temporary:
        return Access.READS_TEMP_TRANS if is_transactional else Access.READS_TEMP_NONTRANS
    return Access.READS_TRANS if is_transactional else Access.READS_NONTRANS


@dataclass(frozen=True, slots=True)
class MixedRule:
    """A pair of classes that is unsafe within a transaction of several statements.

    Attributes:
        pair: Both classes.
        is_direct: What `binlog_direct_non_transactional_updates` must be; None: either.
        needs_full_cache: Only if something waits in the transaction cache.
    """

    pair: Access
    is_direct: bool | None = None
    needs_full_cache: bool = False

    def holds(self, access: Access, *, is_direct: bool, is_cache_empty: bool) -> bool:
        """Whether the rule makes a statement with these accesses unsafe."""
        return (
            access & self.pair == self.pair
            and self.is_direct in (None, is_direct)
            and not (self.needs_full_cache and is_cache_empty)
        )


MIXED_RULES: Final = (
    MixedRule(Access.WRITES_TRANS | Access.WRITES_NONTRANS),
    MixedRule(Access.WRITES_TRANS | Access.READS_NONTRANS),
    MixedRule(Access.WRITES_NONTRANS | Access.WRITES_TEMP_TRANS),
    MixedRule(Access.WRITES_TEMP_TRANS | Access.READS_NONTRANS),
    MixedRule(Access.WRITES_TRANS | Access.WRITES_TEMP_NONTRANS, is_direct=True),
    MixedRule(Access.WRITES_TRANS | Access.READS_TEMP_NONTRANS, is_direct=True),
    MixedRule(Access.WRITES_TEMP_TRANS | Access.WRITES_TEMP_NONTRANS, is_direct=True),
    MixedRule(Access.WRITES_TEMP_TRANS | Access.READS_TEMP_NONTRANS, is_direct=True),
    MixedRule(Access.WRITES_NONTRANS | Access.READS_TRANS, needs_full_cache=True),
    MixedRule(Access.WRITES_NONTRANS | Access.READS_TEMP_TRANS, needs_full_cache=True),
    MixedRule(
        Access.WRITES_TEMP_NONTRANS | Access.READS_TRANS, is_direct=True, needs_full_cache=True
    ),
    MixedRule(
        Access.WRITES_TEMP_NONTRANS | Access.READS_TEMP_TRANS, is_direct=True, needs_full_cache=True
    ),
    MixedRule(
        Access.WRITES_TEMP_NONTRANS | Access.READS_NONTRANS, is_direct=False, needs_full_cache=True
    ),
)
_NONTRANS_WRITES: Final = Access.WRITES_NONTRANS | Access.WRITES_TEMP_NONTRANS


def is_mixed_unsafe(
    access: Access,
    *,
    is_in_transaction: bool,
    is_direct: bool,
    is_cache_empty: bool,
    is_below_repeatable_read: bool,
) -> bool:
    """Whether a statement with these accesses is unsafe.

    Args:
        access: Classes of all its tables.
        is_in_transaction: A transaction of several statements is open.
        is_direct: binlog_direct_non_transactional_updates.
        is_cache_empty: Nothing waits in the transaction cache.
        is_below_repeatable_read: The isolation level is a weaker one; then a read of a
            transactional table may not go into another one, in a transaction or not.
    """
    if is_below_repeatable_read and Access.READS_TRANS in access and access & _NONTRANS_WRITES:
        return True
    return is_in_transaction and any(
        rule.holds(access, is_direct=is_direct, is_cache_empty=is_cache_empty)
        for rule in MIXED_RULES
    )
