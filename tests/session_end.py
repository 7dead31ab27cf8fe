"""When a session has ended on its server, with all that its end adds to the log."""

from __future__ import annotations

import time
from typing import Final

import pymysql
from pymysql.connections import Connection
from pymysql.cursors import Cursor

_THREAD: Final = "SELECT 1 FROM performance_schema.threads WHERE processlist_id = {}"
# MariaDB's process list leaves a session out as soon as its connection is closed, before its
# temporary tables are dropped; this looks among the threads themselves.
_MARIADB_THREAD: Final = "SHOW EXPLAIN FOR {}"
_NO_SUCH_THREAD: Final = 1094
_GONE_S: Final = 20.0


def wait_for_end(observer: Connection[Cursor], flavor: str, thread_id: int) -> None:
    """Wait until a session that is being closed is gone.

    Args:
        observer: Another session at the same server.
        flavor: `mariadb` or `mysql`.
        thread_id: The session's thread at the server.

    Raises:
        AssertionError: If it is still there after some seconds.
    """
    deadline_s = time.monotonic() + _GONE_S
    while _is_there(observer, flavor, thread_id):
        assert time.monotonic() < deadline_s, "the session does not end"
        time.sleep(0.002)


def _is_there(observer: Connection[Cursor], flavor: str, thread_id: int) -> bool:
    with observer.cursor() as cursor:
        if flavor == "mysql":
            return bool(cursor.execute(_THREAD.format(thread_id)))
        try:
            cursor.execute(_MARIADB_THREAD.format(thread_id))
        except pymysql.MySQLError as error:
            # Any other says that it runs nothing that could be explained.
            return bool(error.args[0] != _NO_SUCH_THREAD)
        return True
