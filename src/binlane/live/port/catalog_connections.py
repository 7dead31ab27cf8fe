"""Connections of binlane's own account to the source, over which the catalog's questions are asked.

The connections block, so that threads ask; each has a connection as long as it asks.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from random import random
from typing import Final, TypeVar

from binlane.client.needed_objects import Question
from binlane.client.questions import (
    Answer,
    Asking,
    AskingContext,
    NotUnderstoodError,
    asking,
)
from binlane.client.session import ServerSession
from binlane.client.source_objects import LOCK_TIMEOUT_S, TIMEOUT_S
from binlane.errors import BinlaneError, PeerError, SourceDownError, StatementError
from binlane.live.capture.backoff import Backoff
from binlane.live.capture.settings import SourceSettings
from binlane.live.capture.source_facts import quoted_account
from binlane.live.gateway.source_privileges import global_privileges
from binlane.positions import GtidSet, MysqlGtid
from binlane.statements.policy.server import Server

NOT_TOLD: Final = "the source does not tell what the statement uses"
_LOCK_WAIT_S: Final = 1
"""Seconds for which a question waits for a lock of somebody: meanwhile it keeps others from being asked."""
_ACCESS_DENIED: Final = 1142
_NEEDED: Final = ("SELECT", "SHOW VIEW", "TRIGGER")
"""Privileges on `*.*` without which the source hides objects, and does not say that it does."""
_Result = TypeVar("_Result")


class CatalogConnections:
    """The source, asked by threads, each of which has a connection as long as it asks.

    Args:
        settings: Address of the source, and binlane's own account there.

    Attributes:
        incarnation: Counts the connections that were lost.
    """

    def __init__(self, settings: SourceSettings) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._idle: list[ServerSession] = []
        self._busy: set[ServerSession] = set()
        self._backoff = Backoff()
        self._not_before_s = 0.0
        self._problem: PeerError | None = None
        self._is_closed = False
        self._seen: list[MysqlGtid] = []
        self.incarnation = 0

    def close(self) -> None:
        """Go away; whoever asks is told that the source is gone."""
        with self._lock:
            self._is_closed = True
            idle, self._idle = self._idle, []
            for session in self._busy:
                session.abort()
        for session in idle:
            session.close()

    def meet(self) -> Server:
        """Find out which server the source is.

        Raises:
            StatementError: If the source cannot be asked.
        """
        ((version,),) = self._with_session(lambda session: session.ask("SELECT VERSION()"))
        version = version or ""
        return Server.of("mariadb" if "mariadb" in version.lower() else "mysql", version)

    def after(self, gtid: MysqlGtid) -> None:
        """Ask nothing before a transaction is done: MySQL sends it before anybody sees it."""
        with self._lock:
            self._seen.append(gtid)

    def answer(self, question: Question, asked: AskingContext) -> Answer:
        """The answer to a question.

        Raises:
            StatementError: If the source cannot be asked, refuses to tell, or is not understood.
        """
        try:
            return self._with_session(lambda session: self._answer(session, question, asked))
        except NotUnderstoodError:
            raise
        except StatementError as error:
            what = question.topic.value
            name = f" {question.name}" if question.name.table else ""
            raise StatementError(
                f"{NOT_TOLD}, {what}{name}: {error.message}",
                errno=error.errno,
                sqlstate=error.sqlstate,
                hint=error.hint or "try again",
            ) from None

    def _answer(self, session: ServerSession, question: Question, asked: AskingContext) -> Answer:
        with self._lock:
            seen = self._seen.copy()
        if seen:
            gtids = GtidSet.of(seen)
            rows = session.ask(f"SELECT WAIT_FOR_EXECUTED_GTID_SET('{gtids}', {LOCK_TIMEOUT_S})")
            if rows != (("0",),):
                raise StatementError(
                    f"the transactions {gtids} are in its log, but not committed after"
                    f" {LOCK_TIMEOUT_S} s",
                    hint="try again",
                )
            with self._lock:
                self._seen = [gtid for gtid in self._seen if gtid not in seen]
        return _answer(session, asking(question, asked))

    def _with_session(self, work: Callable[[ServerSession], _Result]) -> _Result:
        """Do something in a session, and in another one if that was lost meanwhile."""
        try:
            while True:
                incarnation = self.incarnation
                session, is_new = self._session()
                try:
                    with self._asking(session):
                        result = work(session)
                except StatementError:
                    self._give_back(session, incarnation)
                    raise
                except PeerError:
                    session.close()
                    self.drop()
                    if is_new or self._is_closed:
                        raise
                except BaseException:
                    session.close()
                    raise
                else:
                    self._give_back(session, incarnation)
                    return result
        except StatementError:
            raise
        except BinlaneError as error:
            raise not_asked(f"{NOT_TOLD}: {error}", error) from None

    @contextmanager
    def _asking(self, session: ServerSession) -> Iterator[None]:
        """A session waits for answers, unless all ends."""
        with self._lock:
            if self._is_closed:
                session.abort()
            self._busy.add(session)
        try:
            yield
        finally:
            with self._lock:
                self._busy.discard(session)

    def _session(self) -> tuple[ServerSession, bool]:
        """A session, and True if it is a new one."""
        with self._lock:
            if self._idle:
                return self._idle.pop(), False
            if self._problem is not None and time.monotonic() < self._not_before_s:
                raise self._problem
        settings = self._settings
        try:
            session = ServerSession(settings.url, settings.secret(), answer_s=TIMEOUT_S + 1)
            try:
                _prepare(session)
            except BaseException:
                session.close()
                raise
        except PeerError as error:
            with self._lock:
                self._problem = error
                self._not_before_s = time.monotonic() + self._backoff.next_delay_s(random())  # noqa: S311  # no secret
            raise
        with self._lock:
            self._problem = None
            self._backoff.reset()
        return session, True

    def _give_back(self, session: ServerSession, incarnation: int) -> None:
        with self._lock:
            if not self._is_closed and incarnation == self.incarnation:
                self._idle.append(session)
                return
        session.close()

    def drop(self) -> None:
        """Begin with new connections: the present ones are lost, or soon will be."""
        with self._lock:
            self.incarnation += 1
            idle, self._idle = self._idle, []
        for session in idle:
            session.close()


def not_asked(message: str, error: BinlaneError, *, hint: str = "") -> StatementError:
    """The error that a client gets where the source could not be asked.

    Args:
        message: Message that the client is told.
        error: Reason why the source could not be asked.
        hint: Advice to the client; the default is the error's own advice.
    """
    hint = hint or error.hint or "see whether the source runs"
    if isinstance(error, PeerError) and error.errno is None:
        return SourceDownError(message, hint=hint)
    return StatementError(message, hint=hint)


def lacking_privileges(grants: Sequence[str]) -> list[str]:
    """Give the privileges that an account lacks to see all objects.

    Args:
        grants: The lines of SHOW GRANTS.
    """
    held = global_privileges(grants)
    # MySQL's partial_revokes take databases away again.
    is_partial = any(line.startswith("REVOKE ") for line in grants)
    if "ALL PRIVILEGES" in held and not is_partial:
        return []
    return [name for name in _NEEDED if name not in held or is_partial]


def _prepare(session: ServerSession) -> None:
    """Set the variables on which the texts of definitions hang, and the longest waits.

    Raises:
        StatementError: If the source hides objects from the account; a session keeps the rights
            that it began with.
    """
    timeout = (
        f", max_statement_time = {TIMEOUT_S:.0f}" if "mariadb" in session.version.lower() else ""
    )
    session.ask(
        "SET SESSION sql_mode = '', sql_quote_show_create = 1, autocommit = 1,"
        f" lock_wait_timeout = {_LOCK_WAIT_S}, wait_timeout = 86400{timeout}"
    )
    lacking = lacking_privileges([row[0] or "" for row in session.ask("SHOW GRANTS")])
    if lacking:
        ((account,),) = session.ask("SELECT CURRENT_USER()")
        raise StatementError(
            f"{NOT_TOLD}: binlane's own account {account} there may not see all objects",
            errno=_ACCESS_DENIED,
            sqlstate="42000",
            hint=f"GRANT {', '.join(lacking)} ON *.* TO {quoted_account(account or '')}",
        )


def _answer(session: ServerSession, steps: Asking) -> Answer:
    """Put the statements of a question to the source."""
    try:
        statement = next(steps)
        while True:
            try:
                rows = session.ask(statement)
            except PeerError as error:
                if error.errno is None:
                    raise
                refused = StatementError(error.message, errno=error.errno, hint=error.hint)
                statement = steps.throw(refused)
            else:
                statement = steps.send([list(row) for row in rows])
    except StopIteration as stop:
        found: Answer = stop.value
        return found
