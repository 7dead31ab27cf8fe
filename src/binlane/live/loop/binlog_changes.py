"""Statements' changes of binlogs, which the routing loop executes between event groups.

Each says in its docstring from which position on it holds. None looks at anything before the loop
executes it that another one could change.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import Final, TypeVar

from binlane.binlogs.routing.event_routing import LOST_EVENTS
from binlane.binlogs.routing.routed_group import RoutedGroup
from binlane.binlogs.routing.table_links import NO_LINKS, TableLinks
from binlane.binlogs.store.binlog import Binlog
from binlane.binlogs.store.catalog import BinlogActivity
from binlane.binlogs.store.child_catching_up import ChildrenBehindError
from binlane.binlogs.store.child_shadow import prepare_children
from binlane.binlogs.store.fills import Fill
from binlane.binlogs.store.grants import ReadGrant
from binlane.binlogs.store.incidents import StoredIncident
from binlane.binlogs.store.settings import StoreSettings
from binlane.errors import DefinitionError, StatementError, StoreError
from binlane.live.loop.command_queue import Command
from binlane.live.loop.loop import RoutingLoop
from binlane.live.loop.outputs import Output
from binlane.log.codec.control import IncidentEvent
from binlane.log.codec.event import Event, EventHeader
from binlane.log.codec.types import EventType
from binlane.positions import FilePosition, Position, parse_position
from binlane.statements.scope.definition import Definition, duplicate_binlog, unknown_binlog
from binlane.statements.sql.accounts import AccountName

SOURCE_TIMEOUT_S: Final = 10.0
"""Longest wait of CREATE BINLOG for capture's first word from the source."""

MAIN_TIMEOUT_S: Final = 3.0
"""Longest wait of CREATE BINLOG for the main feed to come to where the new binlog may begin."""

COMPLETE_TIMEOUT_S: Final = 10.0
"""Longest wait of descriptions of a binlog for it to be complete up to the source."""

_UNKNOWN_TARGET_BINLOG: Final = 1373
_LOCK_TIMEOUT: Final = 1205
_NOT_REACHED: Final = 1236
_NO_SUCH_GRANT: Final = 1141
_MESSAGE_MAX: Final = 255

_T = TypeVar("_T")


class BinlogChanges:
    """The changes, called in an event loop and executed by the routing loop's thread.

    A change raises StatementError (of the name, or the time that it takes), and StoreError if the
    disk cannot be written.

    Args:
        loop: The loop that executes them.
    """

    def __init__(self, loop: RoutingLoop) -> None:
        self._loop = loop

    async def create(
        self,
        name: str,
        make: Callable[[int], Definition],
        *,
        done: Position,
        links: TableLinks = NO_LINKS,
    ) -> Position:
        """Make a binlog.

        It begins where the main feed stands once that has given `done`. Where that takes too long
        it begins at `done`, and catches up by a feed of its own. Gives where it begins.

        Args:
            name: The name of the binlog.
            make: Gives the definition for a new log id.
            done: The source's position when the statement came.
            links: Between the source's tables at that time.
        """

        def execute(waited_s: float) -> Position | None:
            loop, main = self._loop, self._loop.main
            if name in loop.outputs:
                raise duplicate_binlog(name)
            position = main.position
            has_come = position is not None and position.includes(done)
            if not main.is_streaming or main.router.format is None or position is None:
                if main.refusal or waited_s > SOURCE_TIMEOUT_S:
                    raise unreached(main.refusal)
                return None
            if not has_come and waited_s < MAIN_TIMEOUT_S:
                return None
            begin = position if has_come else done
            header, description = main.router.format
            binlog = loop.store.create_binlog(
                make(loop.store.next_log_id()),
                start=begin,
                format_description=description,
                server_id=header.server_id,
                timestamp=header.timestamp,
            )
            know(binlog, links, is_followed=False)
            output = loop.add_output(binlog)
            if has_come:
                loop.attach(output, main)
            else:
                loop.catch_up([output])
            return begin

        return await self._do(execute)

    async def alter(
        self,
        name: str,
        change: Callable[[Definition], Definition],
        *,
        done: Position,
        links: TableLinks = NO_LINKS,
    ) -> Position:
        """Give a binlog another definition, made of the one that it has when this is executed.

        It holds from where the binlog stands once it has `done`: what the source had done when the
        statement came belongs to the definition before. Gives that position.

        Args:
            name: The name of the binlog.
            change: Gives the definition that follows from another one.
            done: The source's position when the statement came.
            links: Between the source's tables at that time.
        """

        def execute(waited_s: float) -> Position | None:
            output = self._output(name)
            if self._loop.store.seeds.fill_of(output.binlog.definition.log_id) is not None:
                raise being_filled(output)
            if self._loop.histories.has_begun_in(output):
                return None  # by another definition the rows might never be used
            definition = change(output.binlog.definition)
            if not output.binlog.reached.includes(done):
                if output.state.activity is BinlogActivity.STOPPED or waited_s > COMPLETE_TIMEOUT_S:
                    raise incomplete(output, done)
                return None
            if not prepared(self._loop, output, output.binlog.memory.links, definition):
                return None
            before = output.binlog.definition.scope
            self._changing(output, lambda: self._loop.store.alter_binlog(definition))
            is_followed = not before.is_unscoped and not definition.scope.is_unscoped
            self._changing(output, lambda: know(output.binlog, links, is_followed=is_followed))
            return output.binlog.position

        return await self._do(execute)

    async def drop(self, name: str, *, if_exists: bool = False) -> bool:
        """Remove a binlog and end its dumps; gives whether there was one."""

        def execute(_waited_s: float) -> bool:
            if if_exists and name not in self._loop.outputs:
                return False
            output = self._output(name)
            fill = self._loop.store.seeds.fill_of(output.binlog.definition.log_id)
            try:
                self._loop.store.drop_binlog(name)
            finally:
                # Files that a disk does not let go of are removed when the store is next opened.
                if name not in self._loop.store.binlogs:
                    self._loop.remove_output(output)
            if fill is not None:
                drop_staging(self._loop, fill)
            return True

        return await self._do(execute)

    async def rotate(self, name: str) -> None:
        """Begin a new file where the binlog stands."""

        def execute(_waited_s: float) -> bool:
            output = self._output(name)
            self._changing(output, lambda: output.binlog.rotate(int(time.time())))
            return True

        await self._do(execute)

    async def purge(self, name: str, first: str) -> None:
        """Delete the files before `first`."""

        def execute(_waited_s: float) -> bool:
            output = self._output(name)
            if all(file.name != first for file in output.binlog.files()):
                raise DefinitionError(
                    f"Target log not found in binlog index: '{first}'",
                    errno=_UNKNOWN_TARGET_BINLOG,
                    hint=f"SHOW BINARY LOGS FOR '{name}' lists the files",
                )
            self._changing(output, lambda: output.binlog.purge(first))
            return True

        await self._do(execute)

    async def stop(self, name: str) -> Position:
        """Let a binlog get nothing more, also after a restart; gives where it stands."""

        def execute(_waited_s: float) -> Position:
            output = self._output(name)
            if output.is_filling:
                raise being_filled(output)
            self._loop.store.set_activity(name, BinlogActivity.STOPPED, "STOP BINLOG")
            self._loop.sync([output])
            self._loop.detach(output)
            output.stop()
            return output.binlog.position

        return await self._do(execute)

    async def start(self, name: str, text: str | None) -> Position:
        """Let a binlog go on from where it stands, or from a position ahead of that.

        What lies between is missing in it then: an INCIDENT says so, and stops replicas that did
        not get it elsewhere. Gives the position from which it goes on.

        Args:
            name: The name of the binlog.
            text: The position; None for where the binlog stands.
        """

        def execute(_waited_s: float) -> Position:
            output = self._output(name)
            if output.is_filling:
                raise being_filled(output)
            loop, binlog = self._loop, output.binlog
            if text is not None:
                position = _position(text, binlog.position.flavor)
                feed = loop.feed_of(output)
                untaken = feed is not None and feed.lacks_untaken
                if untaken or not binlog.reached.includes(position):
                    self._changing(
                        output, lambda: self._leave_gap(output, position, untaken=untaken)
                    )
                loop.detach(output)
                if loop.main.refusal and not loop.main.outputs:
                    loop.main.try_now()
            elif not output.is_stopped and not output.failure:
                feed = loop.feed_of(output)
                if feed is not None and feed.refusal:
                    feed.try_now()
                return output.binlog.position
            loop.store.set_activity(name, BinlogActivity.CATCHING_UP)
            # From a named position: whatever source this is, it is asked for what comes behind it.
            output.go_on(loop.main.position, forgets_source=text is not None)
            return output.binlog.position

        return await self._do(execute)

    async def acknowledge(self, name: str, last: str | None) -> tuple[StoredIncident, ...]:
        """Note that somebody has dealt with what replicas of a binlog stop at; gives what that is.

        Args:
            name: The name of the binlog.
            last: GTID or `file:position` of the last INCIDENT; None for all.
        """

        def execute(_waited_s: float) -> tuple[StoredIncident, ...]:
            output = self._output(name)
            known = output.binlog.incidents
            if last is not None:
                known = _up_to(known, last, name)
            if known:
                self._changing(output, lambda: output.binlog.acknowledge(known[-1]))
            return known

        return await self._do(execute)

    def note_found(
        self, binlog: Binlog, earlier: Sequence[StoredIncident], unsearched: FilePosition | None
    ) -> Future[bool]:
        """Note the INCIDENTs of files that an older binlane wrote, as `Binlog.found`; any thread may."""

        def execute(_waited_s: float) -> bool:
            output = self._loop.outputs.get(binlog.name)
            if output is not None and output.binlog is binlog and not binlog.failure:
                self._changing(output, lambda: binlog.found(earlier, unsearched))
            return True

        return self._loop.submit(execute)

    async def grant(
        self, names: Sequence[str], accounts: Sequence[AccountName], *, done: Position
    ) -> bool:
        """Let accounts read binlogs; gives whether that is new to any of them.

        Args:
            names: The names of the binlogs.
            accounts: Accounts of the source, which were there.
            done: The source's position before the accounts were looked for.
        """

        def execute(waited_s: float) -> bool | None:
            loop, store = self._loop, self._loop.store
            log_ids = [self._output(name).binlog.definition.log_id for name in names]
            if not store.grants:
                position = loop.main.position
                if position is None:
                    if loop.main.refusal or waited_s > SOURCE_TIMEOUT_S:
                        raise unreached(loop.main.refusal)
                    return None
                loop.accounts.begin(position)
            before = {(each.log_id, each.account): each for each in store.grants}
            now = int(time.time())
            given = {
                (log_id, account): ReadGrant(
                    log_id=log_id, account=account, since=done, granted=now
                )
                for log_id in log_ids
                for account in accounts
            }
            store.set_grants({**before, **given}.values(), loop.accounts.known)
            loop.accounts.renewed()
            return not given.keys() <= before.keys()

        return await self._do(execute)

    async def revoke(
        self, names: Sequence[str], accounts: Sequence[AccountName], *, if_exists: bool = False
    ) -> bool:
        """Take READ on binlogs from accounts, all of it or nothing; gives whether there was any.

        Args:
            names: The names of the binlogs.
            accounts: Accounts of the source, whether they are there or not.
            if_exists: True if a grant that is missing is no error.
        """

        def execute(_waited_s: float) -> bool:
            store = self._loop.store
            log_ids = {name: self._output(name).binlog.definition.log_id for name in names}
            left = {(each.log_id, each.account): each for each in store.grants}
            before = len(left)
            for name, log_id in log_ids.items():
                for account in accounts:
                    if left.pop((log_id, account), None) is None and not if_exists:
                        raise _not_granted(name, account)
            store.set_grants(left.values(), self._loop.accounts.known)
            self._loop.accounts.renewed()
            return len(left) < before

        return await self._do(execute)

    async def use(self, settings: StoreSettings) -> None:
        """Write files by other settings from now on."""

        def execute(_waited_s: float) -> bool:
            self._loop.store.use(settings)
            return True

        await self._do(execute)

    def end_threads(self, threads: frozenset[int]) -> None:
        """Have replicas drop the temporary tables of connections that ended with a process."""
        self._loop.submit(lambda _waited_s: self._loop.end_threads(threads))

    async def nothing(self) -> None:
        """Have the routing loop do nothing, between two event groups."""
        await self._do(lambda _waited_s: True)

    async def execute(self, command: Command[_T]) -> _T:
        """Have the routing loop execute a command between two event groups."""
        return await self._do(command)

    async def _do(self, command: Command[_T]) -> _T:
        return await asyncio.wrap_future(self._loop.submit(command))

    def _leave_gap(self, output: Output, position: Position, *, untaken: bool) -> None:
        """Go on at a position ahead, in a new file, behind an INCIDENT that tells of the gap."""
        binlog = output.binlog
        before, now = binlog.reached, int(time.time())
        what = f"nothing between {before} and {position}"
        if untaken:
            what = f"no transactions that had no GTID behind {before}, and {what}"
        message = (
            f"binlog {binlog.name} holds {what}: START BINLOG FROM; "
            "rebuild the replica from the source as of then"
        )
        header = EventHeader(
            timestamp=now,
            type_code=EventType.INCIDENT,
            server_id=binlog.head.server_id,
            length=0,
            next_position=0,
            flags=0,
        )
        body = IncidentEvent(number=LOST_EVENTS, message=message.encode()[:_MESSAGE_MAX])
        binlog.remember(binlog.memory.behind_gap())
        binlog.append_new(RoutedGroup(gtid=None, events=(Event(header, body),)))
        output.counts.incidents += 1
        # The new file says what is done before it: who asks for more than that begins there.
        binlog.advance_to(position)
        binlog.rotate(now)
        binlog.sync(force=True)

    def _output(self, name: str) -> Output:
        output = self._loop.outputs.get(name)
        if output is None:
            raise unknown_binlog(name, self._loop.outputs)
        return output

    def _changing(self, output: Output, change: Callable[[], object]) -> None:
        """Change a binlog; a disk that fails then stops it, and is told to who asked."""
        before = output.binlog.published
        try:
            change()
        except StoreError as error:
            self._loop.fail(output, error)
            raise
        finally:
            if output.binlog.published is not before:
                self._loop.tell(output)


def prepared(loop: RoutingLoop, output: Output, links: TableLinks, after: Definition) -> bool:
    """True if a binlog has the rows of its children that its next definition needs.

    Else they are being read, and the binlog gets nothing until its new definition holds: what comes
    meanwhile might come faster than it is read.

    Args:
        loop: The loop that feeds the binlog.
        output: The binlog that is to get another definition.
        links: Foreign keys as they are behind its last group.
        after: The definition that it gets next.
    """
    try:
        prepare_children(output.binlog, links, after)
    except ChildrenBehindError as error:
        if loop.feed_of(output) is not None:
            loop.fail(output, error)
        return False
    return True


def know(binlog: Binlog, links: TableLinks, *, is_followed: bool) -> None:
    """Have a binlog know of the source's tables, before it gets anything by its definition.

    Args:
        binlog: The binlog that has the definition.
        links: Between tables, as the source answered.
        is_followed: True if the binlog followed the log's DDL up to here, and goes on to do so.
    """
    memory = binlog.memory
    if not is_followed:
        memory = memory.with_created(())
    binlog.remember(replace(memory, links=known_links(binlog, links, is_followed=is_followed)))
    binlog.sync(force=True)


def known_links(binlog: Binlog, links: TableLinks, *, is_followed: bool) -> TableLinks:
    """The links that a binlog has once it knows of the source's tables, as `know` takes them."""
    followed = binlog.memory.links
    return followed if is_followed and followed.is_complete and not links.is_complete else links


def _up_to(known: tuple[StoredIncident, ...], last: str, binlog: str) -> tuple[StoredIncident, ...]:
    """The INCIDENTs up to a named one.

    Raises:
        DefinitionError: If there is none of this name.
    """
    named = [n for n, each in enumerate(known) if last in {each.gtid, each.place_text}]
    if not named:
        raise DefinitionError(
            f"no INCIDENT of binlog '{binlog}' that is not acknowledged is at '{last}'",
            hint=f"SHOW BINLOG INCIDENTS FOR '{binlog}' lists them; name one by its GTID or as "
            "'file:position'",
        )
    return known[: named[-1] + 1]


def incomplete(output: Output, position: Position) -> StatementError:
    """The error for a binlog that is behind the source for too long."""
    state = output.state
    if state.activity is BinlogActivity.STOPPED:
        return StatementError(
            f"binlog '{output.name}' is not complete up to {position} of the source; it is {state}",
            errno=_LOCK_TIMEOUT,
            hint=f"once the cause is gone it goes on by itself, or by START BINLOG '{output.name}'",
        )
    if state.activity is BinlogActivity.FILLING:
        return StatementError(
            f"binlog '{output.name}' is not complete up to {position} of the source: it is being "
            f"given rows ({state})",
            errno=_LOCK_TIMEOUT,
            hint="it goes on by itself: ask again once SHOW BINLOGS says OPEN",
        )
    return StatementError(
        f"binlog '{output.name}' is not complete up to {position} of the source after "
        f"{COMPLETE_TIMEOUT_S:.0f} s",
        errno=_LOCK_TIMEOUT,
        hint="SHOW BINLOGS tells how far it is; binlane's own log tells why",
    )


def being_filled(output: Output) -> DefinitionError:
    """The error for a change of a binlog whose tables' rows are read."""
    return DefinitionError(
        f"binlog '{output.name}' is being given rows ({output.state})",
        hint="SHOW BINLOGS tells how far that is: wait for its end, or cancel it: "
        f"ALTER BINLOG '{output.name}' WITHOUT ROWS, DROP BINLOG for one that has nothing else",
    )


def drop_staging(loop: RoutingLoop, fill: Fill) -> None:
    """Remove the binlog that keeps changes while rows are read, if it is there."""
    staging = loop.outputs.get(fill.staging)
    if staging is not None:
        try:
            loop.store.drop_binlog(fill.staging)
        finally:
            loop.remove_output(staging)


def unreached(refusal: str) -> StatementError:
    """The error where capture has not had its first word from the source."""
    return StatementError(
        f"the source's log has not been reached yet{f': {refusal}' if refusal else ''}",
        errno=_NOT_REACHED,
        hint="see binlane's own log for why, and try again",
    )


def _not_granted(name: str, account: AccountName) -> StatementError:
    return StatementError(
        f"There is no such grant defined for user '{account.user}' on host '{account.host}' on binlog "
        f"'{name}'",
        errno=_NO_SUCH_GRANT,
        sqlstate="42000",
        hint=f"SHOW GRANTS ON BINLOG '{name}' lists those that there are",
    )


def _position(text: str, flavor: str) -> Position:
    try:
        position: Position = parse_position(text, flavor)
    except ValueError as error:
        raise DefinitionError(
            f"{error}", hint="such as 0-1-27, or a GTID set where the source is MySQL"
        ) from None
    return position
