"""What happened when a recorded statement ran, as far as only the data tell.

All of it follows from the rows that the recording's objects begin with, never from what was logged:
`a=1` and `a=2` stand in every table, `g=1` in `tcomp`, no `b` is `'nope'`.
"""

from __future__ import annotations

from typing import Final

from binlane.statements.policy.refusals import Outcome
from tests.yardsticks.records import Record

_NOTHING: Final = Outcome(rows=0)
_PROVEN_EMPTY: Final = Outcome(is_proven_empty=True)

_OUTCOMES: Final = {
    "fun_del:rand()": _NOTHING,  # no a=100
    "del:tm": _NOTHING,
    "del:tat": _NOTHING,
    "del:tp": _NOTHING,
    "del:tg": _NOTHING,
    "del:ttrig": _NOTHING,  # no rows at all
    "upd_comp": _NOTHING,  # g=g
    "update_noop": _NOTHING,  # b=b
    "delete_limit": _NOTHING,  # no a>100
    "delete_nomatch": _NOTHING,
    "update_nomatch": _NOTHING,
    "sys_table_pfs": _NOTHING,  # enabled=enabled
    "sys_table_pfs_nolimit": _NOTHING,
    "seq_nextval_do": _NOTHING,  # the range in the cache lasts
    "err_dup_N_first": Outcome(error=1062, rows=0),
}
_OUTCOMES_OF: Final = {
    "mariadb": {
        # The optimiser of DELETE reads a row by its primary key, and BLACKHOLE holds none.
        "del:tb": _PROVEN_EMPTY,
        # Random bytes are no text of the column's character set.
        "fun:aes_encrypt('a','b')": Outcome(error=1366, rows=0),
        # InnoDB takes no delayed inserts.
        "ins_delayed_t": Outcome(error=1616, rows=0),
    },
    "mysql": {
        "del:tb": _NOTHING,
        "fun:statement_digest('select_1')": Outcome(error=3676, rows=0),
        "fun:wait_for_executed_gtid_set('',0)": Outcome(error=3062, rows=0),
    },
}


def outcome(record: Record) -> Outcome:
    """What the data made of a record's statement."""
    own = _OUTCOMES_OF[record.flavor].get(record.name)
    return own or _OUTCOMES.get(record.name, Outcome())
