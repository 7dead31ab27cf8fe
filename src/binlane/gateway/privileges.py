"""What an account may do to binlogs, as SHOW GRANTS on the source says."""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import Enum
from typing import Final

from binlane.errors import StatementError

_GRANT: Final = re.compile(r"GRANT (?P<privileges>.+?) ON \*\.\* TO ", re.IGNORECASE)
_ALL: Final = "ALL PRIVILEGES"
ACCESS_DENIED_ERRNO: Final = 1227


class Privilege(Enum):
    """What the source must have granted on `*.*`: any one of the names, or ALL PRIVILEGES."""

    READ = ("REPLICATION SLAVE",)
    """To dump binlogs and to see which there are."""
    DEFINE = ("BINLOG ADMIN", "BINLOG_ADMIN", "SUPER")
    """To create, alter, drop, rotate and purge binlogs; MySQL writes the name with an underscore."""


def global_privileges(grants: Iterable[str]) -> frozenset[str]:
    """Names of the privileges on `*.*`, in capitals.

    Args:
        grants: The lines of SHOW GRANTS, those of active roles included.
    """
    return frozenset(
        name.strip().upper()
        for line in grants
        if (match := _GRANT.match(line))
        for name in match["privileges"].split(",")
    )


def check(privilege: Privilege, grants: Iterable[str]) -> None:
    """See that a privilege is granted.

    Raises:
        StatementError: With the text of the servers, if it is not.
    """
    held = global_privileges(grants)
    if _ALL in held or held & set(privilege.value):
        return
    raise StatementError(
        f"Access denied; you need (at least one of) the {privilege.value[0]} privilege(s) for this "
        "operation",
        errno=ACCESS_DENIED_ERRNO,
        sqlstate="42000",
    )
