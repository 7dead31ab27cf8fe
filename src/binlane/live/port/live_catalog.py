"""The source's objects, known to all sessions of the port: read when they are first used.

Read with binlane's own account, by a few connections in threads, so that what a client may not see
counts all the same. DDL at the port and in the captured log makes what it may have changed unknown;
whoever uses that next reads it again. All but `noted` is the event loop's.

Whoever shares the objects sees what is added to them; what is taken away stays with those who had
it until they `fit` themselves anew. So `version` is another one only where something that was known
is not any more: what was decided of a statement that the catalog `covers` holds until then.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Final, Protocol, TypeVar

from binlane.binlogs.routing.logged_ddl import logged_ddl
from binlane.client.known_objects import KnownObjects
from binlane.client.needed_objects import Need, Question, Topic
from binlane.client.questions import Answer, AskingContext, NotUnderstoodError
from binlane.errors import (
    CodecError,
    SourceDownError,
    StatementError,
)
from binlane.live.port.catalog_connections import NOT_TOLD
from binlane.log.codec.types import Flavor
from binlane.log.grouping.raw import Item
from binlane.names import folded
from binlane.positions import AnyGtid, MysqlGtid
from binlane.statements.policy.server import Server
from binlane.statements.sql.catalog import SchemaCatalog
from binlane.statements.sql.facts import StatementFacts
from binlane.statements.sql.logged_statements import LoggedStatement, logged_statement
from binlane.statements.sql.reading import read
from binlane.statements.sql.servers import Dialect
from binlane.statements.sql.statement_kinds import DDL_KINDS, StatementKind

logger = logging.getLogger(__name__)

CONNECTIONS: Final = 8
"""Questions that are asked at the same time."""
_AT_ONCE_MAX: Final = 64
"""Questions of one statement that wait at a time: those of others have their turn between them."""
_ROUNDS_MAX: Final = 256
"""Greatest depth of views, triggers and foreign keys that hang on each other."""
WATCH_S: Final = 10.0
"""Seconds for which a global variable may have another value than is known."""
_SETTINGS: Final = Question(Topic.SETTINGS)
_AGAIN_MAX: Final = 64
"""Number of times that a question is asked again because DDL was seen meanwhile."""
_ACCESS_DENIED: Final = 1142
_TIMED_OUT: Final = frozenset((1205, 1969, 3024))
_WAITED_IN_VAIN: Final = _TIMED_OUT | {1213, 1317}
"""Errors of who waited: too long, for each other, until somebody ended it."""
_REFUSED: Final = frozenset((1044, 1064, _ACCESS_DENIED, 1143, 1227, 1370))
"""Errors of a statement that did nothing at all: it is not understood, or not allowed."""
_ANY: Final = Dialect()
_Result = TypeVar("_Result")


class SessionQuestions(Protocol):
    """Questions that a client's session may be asked before its next statement."""

    def may_have_locked(self, question: Question) -> bool:
        """True if the session may have locked the object of a question, so that others would wait."""
        ...

    async def answer(self, question: Question, asked: AskingContext) -> Answer:
        """The answer to a question, asked in the session; errors as of `client.source_objects`."""
        ...


class ObjectSource(Protocol):
    """The source as the catalog asks it; all but `incarnation` may block, and is called in threads.

    Attributes:
        incarnation: Counts the times that the source was lost: what was told before may not hold.
    """

    incarnation: int

    def meet(self) -> Server:
        """Find out which server the source is.

        Raises:
            StatementError: If the source cannot be asked.
        """
        ...

    def answer(self, question: Question, asked: AskingContext) -> Answer:
        """The answer to a question.

        Raises:
            StatementError: If the source cannot be asked, refuses to tell, or is not understood.
        """
        ...

    def after(self, gtid: MysqlGtid) -> None:
        """Ask nothing before a transaction is done."""
        ...

    def drop(self) -> None:
        """Begin anew: the source may be another server."""
        ...

    def close(self) -> None:
        """Go away; whoever asks is told that the source is gone."""
        ...


class OnHeard(Protocol):
    """Told that changes of the source's objects were heard of."""

    def __call__(self, numbers: Sequence[int], *, has_lost: bool) -> None:
        """Hear of it."""
        ...


Change = tuple[LoggedStatement, AnyGtid | None]
"""A statement of the source's log that may have changed objects, and the GTID of its group."""


def changes_in(item: Item) -> list[Change] | None:
    """Give the statements in an item of the source's log that may have changed objects, in order.

    Returns:
        None where that cannot be told: the item is damaged, which whoever routes it tells of.
    """
    try:
        return [(logged_statement(event), gtid) for event, gtid in logged_ddl(item)]
    except CodecError:
        return None


class LiveCatalog:
    """The objects of one source.

    Args:
        source: Answers the questions about the objects.
        connections: Number of questions that are asked at the same time.

    Attributes:
        on_changed: Called with the text of a statement that may have changed something, its default
            database and how it is read; None where nobody else has to know.
        on_heard: Called with the numbers of changes once the objects are forgotten that they concern, and with
            whether any known one was forgotten since the call before; None where nobody has to know.
        known: Objects that are known of the source; None while nothing is.
    """

    def __init__(self, source: ObjectSource, *, connections: int = CONNECTIONS) -> None:
        self.on_changed: Callable[[str, str, Dialect], object] | None = None
        self.on_heard: OnHeard | None = None
        self._source = source
        self._threads = ThreadPoolExecutor(connections, thread_name_prefix="catalog")
        self._loop: asyncio.AbstractEventLoop | None = None
        self.known: KnownObjects | None = None
        self._server: Server | None = None
        self._incarnation = 0
        self._waiting: dict[Question, asyncio.Task[None]] = {}
        self._opening: asyncio.Task[None] | None = None
        self._unknown: object = object()
        self._heard = self._unknown  # the version behind the last change that was heard of
        self._watching: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin; a source that is down is asked again when something is needed of it."""
        if self._watching is None:
            self._watching = asyncio.create_task(self._watch())
        try:
            await self._open()
            await self._know(lambda known: known.lacking_of(()))
        except StatementError as error:
            logger.warning("the source's objects are not known yet: %s", error)

    async def stop(self) -> None:
        """Ask nothing more."""
        for task in (*self._waiting.values(), *filter(None, [self._opening, self._watching])):
            task.cancel()
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._source.close()

    @property
    def server(self) -> Server | None:
        """The server that is the source; None as long as it was not reached."""
        return self._server

    @property
    def dialect(self) -> Dialect:
        """The source's dialect without an sql_mode; that of any server before the source was reached."""
        return _ANY if self.known is None else self.known.dialect

    @property
    def is_reached(self) -> bool:
        """True if anything is known of the source as it is now."""
        return self.known is not None

    @property
    def version(self) -> object:
        """An object that is replaced whenever known facts become unknown."""
        return self._unknown if self.known is None else self.known.version

    def covers(self, facts: StatementFacts, database: str) -> bool:
        """True if all objects that a statement uses are known now; an object known to be missing is known.

        Args:
            facts: Parsed facts of the statement's text.
            database: Default database of the statement; empty without one.
        """
        known = self.known
        if known is None:
            return False
        try:
            return known.covers(facts, database)
        except NotUnderstoodError:
            return False

    async def fetch(
        self, facts: StatementFacts, database: str, own: SessionQuestions | None = None
    ) -> tuple[Question, ...]:
        """Ask for the unknown objects that a statement uses; then the catalog covers the statement.

        Args:
            facts: Parsed facts of the statement's text.
            database: Default database of the statement.
            own: Asks for objects for which others than the statement's session would have to wait; None asks
                nothing there.

        Returns:
            The questions that were asked, for `extend`.

        Raises:
            StatementError: If the source cannot be asked, does not tell, or is not understood.
        """
        await self._open()
        return await self._know(lambda known: known.lacking(facts, database), own)

    def reached(self, needs: Iterable[Need]) -> list[tuple[Question, Answer]]:
        """All that belongs to some things, as far as it is known, with what was told of it."""
        known = self.known
        return [] if known is None else known.reached(needs)

    async def fetch_objects(
        self, questions: Iterable[Question], own: SessionQuestions | None = None
    ) -> tuple[Question, ...]:
        """Ask for objects that no text names, like those of a dynamic statement.

        Args:
            questions: Questions about the objects, by topic and name.
            own: Same as in `fetch`; None asks the client's session nothing.

        Returns:
            The questions that were asked: nothing where all was known.

        Raises:
            StatementError: Under the same conditions as in `fetch`.
        """
        await self._open()
        asked = tuple(questions)
        return await self._know(lambda known: known.lacking_of(asked), own)

    def missed(self, catalog: SchemaCatalog) -> tuple[Question, ...]:
        """Give questions on objects that a session missed and nobody asked for: see `fetch_objects`.

        Such are objects that no text of the session names, but one that its programs made up. With an answer,
        a statement that was judged without it is to be judged again.

        Args:
            catalog: The session's catalog; its list of missed objects is emptied.
        """
        known = self.known
        if not catalog.missed or known is None:
            return ()
        names, catalog.missed = catalog.missed, set()
        return known.missed(names)

    async def begun(self) -> SchemaCatalog:
        """Give `catalog` once the source is reached, which is done first where it was not yet, or was lost.

        Raises:
            StatementError: If the source cannot be asked.
        """
        await self._open()
        return self.catalog()

    def catalog(self) -> SchemaCatalog:
        """A catalog for a new session; `fit` keeps it current.

        Raises:
            StatementError: If the source was not reached yet, or was lost.
        """
        known = self.known
        if known is None:
            raise SourceDownError(NOT_TOLD)
        found = SchemaCatalog(flavor=known.flavor, server_version=known.server_version)
        self.fit(found)
        return found

    def fit(self, catalog: SchemaCatalog) -> None:
        """Make a session's catalog current: the source's objects, and its own temporary tables.

        What the session's own DDL made of it is gone: `changed` tells the others of that, and what
        came of it is read from the source.
        """
        known = self.known
        if known is None:
            return
        base, own = known.store, catalog.store
        if own.tables is base.tables:
            return
        temporary = own.temporary
        own = replace(base)
        own.temporary, own.is_shared = temporary, True
        catalog.store = own
        catalog.version = object() if temporary else known.version

    def extend(self, catalog: SchemaCatalog, asked: Iterable[Question]) -> None:
        """Give a session the objects that were asked last, and leave the others as its own DDL made them.

        Args:
            catalog: Catalog of a session that did, in the model, what the source is still to do.
            asked: Questions that `fetch` and `fetch_objects` say that they asked.
        """
        known = self.known
        if known is None or catalog.store.tables is known.store.tables:
            return
        catalog.store.own()
        known.give(catalog.store, asked)
        catalog.version = object()

    def changed(self, facts: StatementFacts, database: str, *, errno: int = 0) -> None:
        """Forget the objects that a statement may have changed.

        The call comes for DDL, and for statements that may run some, after their end, whether they succeeded
        or not. An object that is being read meanwhile is read again.

        Args:
            facts: Parsed facts of the statement; one about a session's temporary table changes nothing here,
                if either the text or what is known of the table says so.
            database: Default database of the statement; empty without one.
            errno: Error number of the source's answer; 0 where it did not fail. An account that may not
                change anything must not make others wait for objects that are read again.
        """
        is_refused = errno in _REFUSED and facts.effects.kind in DDL_KINDS
        if is_refused:
            return
        before = self.version
        if self.known is not None:
            self.known.changed(facts, database)
        if self.on_changed is not None and (
            facts.effects.kind is not StatementKind.SET or self.version is not before
        ):
            self.on_changed(facts.text, database, facts.dialect)

    def heed_changed(self, text: str, database: str, dialect: Dialect, number: int) -> None:
        """Do the same as `changed`, for a statement in another process, where `on_changed` told of it.

        Args:
            text: Text of the client's statement.
            database: Default database of the statement.
            dialect: Dialect in which the text is read.
            number: Number of the change that `on_heard` is told of; 0 for none.
        """
        work: list[Callable[[], None]] = []
        if self.known is not None:
            facts = read(text, database=database, dialect=dialect)
            work = [partial(self.known.changed, facts, database)]
        self._hear(work, (number,) if number else ())

    def forget(self) -> None:
        """Forget all objects: anything may have happened to them."""
        if self.known is not None:
            self.known.forget_all()

    def source_changed(self) -> None:
        """Forget all objects: the source may be another server; callable from any thread."""
        self._later([self._source.drop, self._anew])

    def logged(self, changes: Sequence[Change] | None, numbers: Sequence[int] = ()) -> None:
        """Forget the objects that `changes_in` an item may have changed; callable from any thread.

        Args:
            changes: The changes, in order; None where they are not known.
            numbers: Numbers of changes that `on_heard` is told of behind that.
        """
        known = self.known
        if changes is not None and not changes:
            return
        work: list[Callable[[], None]] = []
        if known is not None:
            work = [self.forget] if changes is None else self._heeding(known, changes)
        if self._loop is None:
            self._hear((), numbers)  # nothing is known yet, nor asked
        else:
            self._later([partial(self._hear, work, numbers)])

    def _hear(self, work: Iterable[Callable[[], None]], numbers: Sequence[int]) -> None:
        """Forget objects, and tell whoever wants to know of it."""
        _each(work)
        # A session's own DDL may have made it forget the same objects before the log tells of that.
        before, self._heard = self._heard, self.version
        if numbers and self.on_heard is not None:
            self.on_heard(numbers, has_lost=self._heard is not before)

    def _heeding(self, known: KnownObjects, changes: Sequence[Change]) -> list[Callable[[], None]]:
        """Give what is to be done about changes in the event loop."""
        work: list[Callable[[], None]] = []
        dialect = known.dialect
        for logged, gtid in changes:
            database = folded(logged.database) if known.ignores_case else logged.database
            own = dialect.with_mode(logged.sql_mode, logged.charset)
            facts = read(logged.text, database=database, dialect=own)
            work.append(partial(self._note, facts, database, gtid))
        return work

    def _later(self, work: Sequence[Callable[[], None]]) -> None:
        """Do something in the event loop."""
        if self._loop is not None:
            with suppress(RuntimeError):  # it has ended
                self._loop.call_soon_threadsafe(_each, work)

    def _note(self, facts: StatementFacts, database: str, gtid: AnyGtid | None) -> None:
        if isinstance(gtid, MysqlGtid):
            self._source.after(gtid)
        if self.known is not None:
            self.known.changed(facts, database)

    # Asking ---------------------------------------------------------------------------------------

    async def _know(
        self,
        lacking: Callable[[KnownObjects], Iterable[Question]],
        own: SessionQuestions | None = None,
    ) -> tuple[Question, ...]:
        """Ask until nothing is lacking, and give the questions that were asked."""
        asked: dict[Question, None] = {}
        for _ in range(_ROUNDS_MAX):
            known = self.known
            if known is None:
                await self._open()
                continue
            questions = list(dict.fromkeys(lacking(known)))
            if not questions:
                return tuple(asked)
            asked.update(dict.fromkeys(questions))
            locked: list[Question] = []
            left: list[Question] = []
            for one in questions:
                is_locked = own is not None and own.may_have_locked(one)
                (locked if is_locked else left).append(one)
            for start in range(0, len(left), _AT_ONCE_MAX):
                some = left[start : start + _AT_ONCE_MAX]
                results = await asyncio.gather(
                    *(self._answered(one) for one in some), return_exceptions=True
                )
                for question, result in zip(some, results, strict=True):
                    if own is not None and _has_waited(result):
                        locked.append(question)
                    elif isinstance(result, BaseException):
                        raise result
            for question in locked:
                assert own is not None, "it is who asks"
                await self._ask_own(question, own)
        raise StatementError(
            f"{NOT_TOLD}: it depends on a chain of more than {_ROUNDS_MAX} objects, or"
            " they change all the time"
        )

    async def _ask_own(self, question: Question, own: SessionQuestions) -> None:
        """Ask a question in a client's session; binlane's own account where that may not see it."""
        known = self.known
        if known is None or known.before(question) != question:
            return
        epoch, asked = known.epoch, known.asked
        try:
            answer = await own.answer(question, asked)
        except StatementError as error:
            if error.errno in _WAITED_IN_VAIN:
                raise
            await self._answered(question)
            return
        if answer.objects.temporary:  # it hides what is asked about
            await self._answered(question)
        elif known is self.known and epoch == known.epoch:
            known.take(question, answer)

    async def _answered(self, question: Question) -> None:
        """Wait until a question is answered, which is asked once for all who wait."""
        task = self._waiting.get(question)
        if task is None:
            task = self._waiting[question] = asyncio.create_task(self._ask(question))
            task.add_done_callback(lambda done: self._done(question, done))
        await asyncio.shield(task)

    def _done(self, question: Question, task: asyncio.Task[None]) -> None:
        del self._waiting[question]
        if not task.cancelled():
            task.exception()  # those who waited have it, if there are any left

    async def _ask(self, question: Question) -> None:
        for _ in range(_AGAIN_MAX):
            known = self.known
            if known is None or known.before(question) != question:
                return
            epoch, asked = known.epoch, known.asked
            try:
                answer = await self._in_thread(partial(self._source.answer, question, asked))
            except NotUnderstoodError as failure:
                if known is self.known and epoch == known.epoch:
                    known.fail(question, failure)
                    return
            else:
                if self._source.incarnation != self._incarnation:
                    self._anew()
                elif known is self.known and epoch == known.epoch:
                    known.take(question, answer)
                    return
        raise StatementError(
            f"{NOT_TOLD}: its objects change all the time", hint="try again when DDL is through"
        )

    async def _watch(self) -> None:
        """Look from time to time for changed settings, of which no log tells."""
        while True:
            await asyncio.sleep(WATCH_S)
            known = self.known
            if known is None or not known.is_asked(_SETTINGS):
                continue
            asked = known.asked
            try:
                told = await self._in_thread(partial(self._source.answer, _SETTINGS, asked))
            except StatementError:
                continue  # whoever needs something is told
            if known is self.known and told.objects.settings != known.store.settings:
                known.forget_settings()

    async def _open(self) -> None:
        """Find out once which server the source is."""
        if self.known is not None:
            return
        self._loop = asyncio.get_running_loop()
        if self._opening is None:
            self._opening = asyncio.create_task(self._meet())
            self._opening.add_done_callback(self._opened)
        await asyncio.shield(self._opening)

    def _opened(self, task: asyncio.Task[None]) -> None:
        self._opening = None
        if not task.cancelled():
            task.exception()  # those who waited have it, if there are any left

    async def _meet(self) -> None:
        server = await self._in_thread(self._source.meet)
        self._incarnation = self._source.incarnation
        self._server = server
        self.known = KnownObjects(Flavor(server.flavor), server.version)

    def _anew(self) -> None:
        """The connection was lost: what happened meanwhile, on which server, nobody knows."""
        if self.known is not None:
            self._unknown = object()
            self.known = None

    async def _in_thread(self, work: Callable[[], _Result]) -> _Result:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)


def _has_waited(result: object) -> bool:
    """True if a question waited in vain for a lock of another session."""
    return isinstance(result, StatementError) and result.errno in _TIMED_OUT


def _each(work: Iterable[Callable[[], None]]) -> None:
    for one in work:
        one()
