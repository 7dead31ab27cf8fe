"""Rights of an account on binlogs, by the output of SHOW GRANTS on the source.

Only a line that is understood to its `ON *.* TO` grants something: everything else, and every name
that somebody has given to an object, a role or an account, stands behind a quote or a word that no
list of global privileges has, and is denied.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from enum import Enum
from typing import Final

from binlane.errors import StatementError
from binlane.statements.sql.tokens import SqlSyntaxError, TokenKind, tokenise

_ALL: Final = "ALL PRIVILEGES"
_END: Final = ["ON", "*", ".", "*", "TO"]
_OUTSIDE: Final = frozenset(("ON", "*", "."))
"""Words that stand in no name of a privilege."""
ACCESS_DENIED_ERRNO: Final = 1227


class SourcePrivilege(Enum):
    """Privileges that the source must have granted on `*.*`: any one of the names, or ALL PRIVILEGES.

    MariaDB prints BINLOG MONITOR where MySQL prints REPLICATION CLIENT, and BINLOG ADMIN where MySQL
    prints BINLOG_ADMIN.
    """

    READ = ("REPLICATION SLAVE",)
    """To dump binlogs."""
    MONITOR = (
        *("REPLICATION SLAVE", "BINLOG MONITOR", "REPLICATION CLIENT"),
        *("BINLOG ADMIN", "BINLOG_ADMIN", "SUPER"),
    )
    """To see which binlogs there are, with their scopes and files."""
    EVENTS = ("REPLICATION SLAVE", "BINLOG MONITOR")
    """To see what stands in them, which has texts of statements."""
    REPLICAS = ("REPLICATION SLAVE", "REPLICATION MASTER ADMIN")
    """To see who reads them."""
    FLUSH = ("RELOAD", "BINLOG ADMIN", "BINLOG_ADMIN", "SUPER")
    """To begin new files."""
    DEFINE = ("BINLOG ADMIN", "BINLOG_ADMIN", "SUPER")
    """To create, alter, drop and purge binlogs."""


def global_privileges(grants: Iterable[str]) -> frozenset[str]:
    """Names of the privileges on `*.*`, in capitals.

    Args:
        grants: The lines of SHOW GRANTS, those of active roles included.
    """
    return frozenset(name for line in grants for name in _global_privileges(line))


def _global_privileges(line: str) -> Iterable[str]:
    """Give the privileges that one line grants on `*.*`; none if it is not wholly understood up to there."""
    head = _head(line)
    names = head[1 : -len(_END)]
    if head[:1] != ["GRANT"] or head[-len(_END) :] != _END or not _OUTSIDE.isdisjoint(names):
        return ()
    found = " ".join(names).split(" , ")
    return found if all("," not in name for name in found) else ()


def _head(line: str) -> list[str]:
    """The words and signs up to the TO of a grant on `*.*`; none where others stand among them."""
    head: list[str] = []
    try:
        for token in tokenise(line):
            if token.kind is not TokenKind.NAME and token.text not in (",", "*", "."):
                return []
            head.append(token.word or token.text)
            if token.word == "TO":
                return head
    except SqlSyntaxError:
        return []
    return []


def check(privilege: SourcePrivilege, grants: Iterable[str]) -> None:
    """See that a privilege is granted.

    Raises:
        StatementError: With the text of the servers, if it is not.
    """
    if not is_held(privilege, global_privileges(grants)):
        raise denied(privilege)


def is_held(privilege: SourcePrivilege, held: AbstractSet[str]) -> bool:
    """True if the privileges of an account on `*.*` are enough."""
    return _ALL in held or not held.isdisjoint(privilege.value)


def denied(privilege: SourcePrivilege, *, beside: str = "") -> StatementError:
    """The servers' error of a missing privilege.

    Args:
        privilege: Privilege that the account lacks.
        beside: Other means that would do, in words.
    """
    return StatementError(
        f"Access denied; you need {beside}(at least one of) the {', '.join(privilege.value)} "
        "privilege(s) for this operation",
        errno=ACCESS_DENIED_ERRNO,
        sqlstate="42000",
    )
