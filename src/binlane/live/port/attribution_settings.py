"""Settings of the attribution of groups to statements."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

JOURNAL_DIRECTORY: Final = "port"
"""In the data directory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttributionSettings:
    """Limits on the time that is waited and on the size of the journal.

    Attributes:
        wait_s: Seconds to wait for a statement's reply, once a group came that may be of the statement.
        file_bytes: Size at which a file of the journal is followed by another.
        journal_max_bytes: Size of all files together; the oldest are removed, and the groups that they tell
            of are routed as rows.
        is_relayed: True if sessions of other processes tell of their statements: a process that is killed may
            not have written the last of it.
    """

    wait_s: float = 5.0
    file_bytes: int = 8 << 20
    journal_max_bytes: int = 1 << 30
    is_relayed: bool = False
