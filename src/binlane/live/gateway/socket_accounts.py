"""Accounts that log in where the source cannot tell binlane's clients from binlane itself.

Over a Unix socket a server can ask the operating system who is at the other end. The answer is binlane for
all of its clients, so that accounts which log in by their operating system user would be open to whoever
knows their name.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Final

from binlane.errors import StatementError
from binlane.live.gateway.handler import HandlerSession
from binlane.log.codec.format import flavor_of
from binlane.log.codec.types import Flavor
from binlane.statements.sql.tokens import SqlSyntaxError, tokenise

_PLUGINS: Final = frozenset(("unix_socket", "auth_socket"))
_BEFORE_PLUGINS: Final = frozenset(("VIA", "OR", "WITH"))


async def check_account(session: HandlerSession) -> None:
    """See that a session's account does not log in by its operating system user.

    Args:
        session: Has just logged in, over a Unix socket.

    Raises:
        StatementError: If it may, or if that cannot be told.
        PeerError: If the source goes away.

    Source: measured. MySQL 9.7 and MariaDB 11.8 name the system's user in `external_user`; 10.11
    does not, and none tells by which of several plugins an account has logged in.
    """
    if flavor_of(session.server_version) is Flavor.MYSQL:
        ((user,),) = (await session.query_source("SELECT @@external_user LIMIT 1")).texts()
        if user is None:
            return
        told = await session.query_source("SHOW CREATE USER CURRENT_USER()")
    else:
        told = await session.query_source("SHOW CREATE USER")
    ((account,),) = told.texts()
    if is_by_system_user(account or ""):
        raise StatementError(
            f"Access denied for user '{session.user}': the account logs in by its operating system"
            " user, and over the source's Unix socket that would be binlane's",
            errno=1045,
            sqlstate="28000",
        )


def is_by_system_user(account: str) -> bool:
    """True if an account may log in by its operating system user.

    Args:
        account: Output of SHOW CREATE USER; one that cannot be read counts as such an account.
    """
    try:
        return any(
            one.word in _BEFORE_PLUGINS and other.value.lower() in _PLUGINS
            for one, other in pairwise(tokenise(account))
        )
    except SqlSyntaxError:
        return True
