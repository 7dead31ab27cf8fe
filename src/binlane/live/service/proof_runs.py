"""Rounds of comparisons beside `serve`: a process of its own, of low priority, every so often.

The process is the command `binlane verify DATA --source …`, which reads the store as any other
reader does. So a comparison holds up neither routing nor a client, and its faults are its own.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import time
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from binlane.binlogs.store.fills import STAGING_PREFIX
from binlane.binlogs.store.stored_groups import StoreReader
from binlane.child_processes import command
from binlane.client.settings import ServerUrl
from binlane.errors import BinlaneError
from binlane.live.capture.settings import SourceSettings
from binlane.live.service.verify_settings import VerifySettings
from binlane.tables.proof.kept_verdicts import KeptVerdicts, proof_directory
from binlane.tables.proof.verdicts import ComparisonOutcome, ComparisonStep, TableVerdict
from binlane.tables.ranges.served_logs import PASSWORD_FILE, server_uri
from binlane.visible import visible

_NICE: Final = 10
"""As the process that reads rows: of two busy cores the least priority gets a hundredth of one, and no
comparison would end."""
_LINE_BYTES_MAX: Final = 1 << 20
_FIRST_S: Final = 60.0
"""Longest time from the start of `serve` to its first round."""
_FAILURE_TEXT_MAX: Final = 2000
_SLOW_S: Final = 60.0
"""A step that takes longer is told in the log, and again when it has taken twice as long."""
_LOOK_S: Final = 15.0
_HOST: Final = re.compile(r"[0-9A-Za-z_.:-]{1,255}")

logger = logging.getLogger(__name__)


class RunningStep:
    """The step at which a process of comparisons is.

    Args:
        step: The step as the process told it.
        process_id: Number of the process that is at it.

    Attributes:
        step: The step as the process told it.
    """

    def __init__(self, step: ComparisonStep, process_id: int) -> None:
        self.step = step
        self._process_id = process_id
        self._waited_s = _waited_s(process_id)

    @property
    def seconds(self) -> float:
        """Time since the step began."""
        return max(0.0, time.time() - self.step.since_s)

    @property
    def text(self) -> str:
        """The step in one line, with its time, and the part of it spent waiting for a processor."""
        seconds = self.seconds
        waited_s = _waited_s(self._process_id) - self._waited_s
        is_starved = seconds > 1.0 and waited_s > seconds / 2
        waiting = f", {waited_s:.0f} s of it waiting for a processor" if is_starved else ""
        return f"{self.step.text}, for {seconds:.0f} s{waiting}"

    @property
    def is_slow(self) -> bool:
        """True if somebody should know that it takes long."""
        return self.seconds > _SLOW_S


class ProofRuns:
    """Has the binlogs of a store compared, and knows the last verdict on each table.

    Args:
        settings: How often and how fast.
        source: The server that is captured.
        data_dir: The directory of the store.
        registered: Gives binlog, host and port of the replicas that registered with an address.

    Attributes:
        running: The step at which the present round is; None between two rounds.
        problem: The reason why the last round failed; empty if it did not.
        ended_s: Time at which the last round ended, in seconds since 1970; None before the first.
    """

    def __init__(
        self,
        settings: VerifySettings,
        source: SourceSettings,
        data_dir: Path,
        registered: Callable[[], Iterable[tuple[str, str, int]]] = tuple,
    ) -> None:
        self._settings = settings
        self._source = source
        self._data_dir = data_dir
        self._registered = registered
        self._verdicts: dict[str, dict[tuple[str, str], TableVerdict]] = {}
        self._wanted: set[str] = set()
        self._wakes = asyncio.Event()
        self._running: asyncio.Task[None] | None = None
        self._process: Process | None = None
        self.running: RunningStep | None = None
        self.problem = ""
        self.ended_s: float | None = None

    @property
    def is_running(self) -> bool:
        """True while a round runs."""
        return self._process is not None

    def verdicts(self, binlog: str) -> list[TableVerdict]:
        """The last verdict on each table of a binlog and each server, differences first."""
        found = self._verdicts.get(binlog, {}).values()
        return sorted(
            found,
            key=lambda each: (
                each.finding is not ComparisonOutcome.DIFFERENT,
                each.table,
                each.server,
            ),
        )

    def check(self, binlogs: Iterable[str]) -> None:
        """Compare some binlogs as soon as no other comparison runs."""
        self._wanted.update(binlogs)
        self._wakes.set()

    def start(self) -> None:
        """Begin to compare; the verdicts of before are known at once."""
        try:
            self._read_kept()
        except BinlaneError as error:
            self.problem = str(error)
            logger.warning("comparisons: %s", visible(str(error)))
        self._running = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Compare no more; a table that is being read is given up."""
        if self._running is not None:
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)
        await self._kill()

    async def _run(self) -> None:
        every_s = self._settings.every_s
        due_s = time.monotonic() + min(every_s, _FIRST_S)
        while True:
            rest_s = max(0.0, due_s - time.monotonic()) if every_s else None
            with suppress(TimeoutError):
                await asyncio.wait_for(self._wakes.wait(), rest_s)
            self._wakes.clear()
            names, self._wanted = sorted(self._wanted), set()
            try:
                await self._round(names)
            except (BinlaneError, OSError) as error:
                self._failed(str(error))
            if not names:
                # What failed is tried again soon.
                due_s = time.monotonic() + (min(every_s, _FIRST_S) if self.problem else every_s)

    async def _round(self, names: Sequence[str]) -> None:
        """Compare once; all binlogs if none is named."""
        begun_s = time.monotonic()
        line = self._command(names)
        if not line:
            return
        process = self._process = await asyncio.create_subprocess_exec(
            *line,
            stdin=DEVNULL,
            stdout=PIPE,
            stderr=PIPE,
            limit=_LINE_BYTES_MAX,
            # The source's password may be empty, and nobody else's is to be tried.
            env={**os.environ, "MYSQL_PWD": ""},
        )
        begins = ComparisonStep(doing="its process begins", since_s=time.time())
        self.running = RunningStep(begins, process.pid)
        watching = asyncio.create_task(self._tell_slow_steps())
        try:
            with suppress(ProcessLookupError, PermissionError):
                os.setpriority(os.PRIO_PROCESS, process.pid, _NICE)
            _, said = await asyncio.gather(self._take_lines(process), _text_of(process))
            status = await process.wait()
        finally:
            watching.cancel()
            self.running = None
            await self._kill()
        await asyncio.to_thread(self._read_kept)
        self.ended_s = time.time()
        if status not in (0, 1):
            self._failed(said or f"the process of comparisons ended with status {status}")
            return
        self.problem = ""
        logger.info("comparisons: done in %.1f s", time.monotonic() - begun_s)

    def _command(self, names: Sequence[str]) -> list[str]:
        there = StoreReader(self._data_dir).names()
        binlogs = [
            name for name in names or there if name in there and not name.startswith(STAGING_PREFIX)
        ]
        if not binlogs:
            return []
        source, settings = self._source, self._settings
        options = [f"{self._data_dir}#{name}" for name in binlogs]
        options += [
            "--source",
            _uri(source.url, source.password_file),
            "--json",
            "--steps",
            "--quiet",
        ]
        options += ["--rows-per-second", str(settings.rows_per_s)]
        for url in self._replicas():
            options += ["--replica", url]
        return command("binlane", "verify", *options)

    def _replicas(self) -> list[str]:
        registered = registered_urls(self._settings, self._source.url.scheme, self._registered())
        return list(dict.fromkeys([*self._settings.replicas, *registered]))

    async def _take_lines(self, process: Process) -> None:
        """Take steps and verdicts as the process prints them."""
        assert process.stdout is not None, "it is a pipe"
        async for line in process.stdout:
            with suppress(ValueError, KeyError, TypeError):
                values = json.loads(line)
                if "step" in values:
                    step = ComparisonStep.parse(values["step"])
                    self.running = RunningStep(step, process.pid)
                else:
                    self._take(TableVerdict.parse(values))

    async def _tell_slow_steps(self) -> None:
        """Tell the log of each step that takes long: a comparison that comes to no end is seen."""
        told, due_s = self.running, _SLOW_S
        while (running := self.running) is not None:
            if running is not told:
                told, due_s = running, _SLOW_S
            if running.seconds > due_s:
                due_s *= 2
                extra = {"binlog": running.step.binlog}
                logger.warning("comparisons: %s", visible(running.text), extra=extra)
            await asyncio.sleep(_LOOK_S)

    def _take(self, verdict: TableVerdict) -> None:
        known = self._verdicts.setdefault(verdict.binlog, {})
        before = known.get((verdict.table, verdict.server))
        known[verdict.table, verdict.server] = verdict
        was = None if before is None else before.finding
        text = f"{verdict.table} ({verdict.server}): {verdict.text}"
        extra = {"binlog": verdict.binlog}
        if verdict.finding is ComparisonOutcome.DIFFERENT:
            is_new = (
                before is None
                or was is not ComparisonOutcome.DIFFERENT
                or before.first != verdict.first
            )
            if is_new:
                logger.error("binlog %s: %s", verdict.binlog, visible(text), extra=extra)
        elif was is ComparisonOutcome.DIFFERENT or (
            before is not None and before.reason != verdict.reason
        ):
            logger.info("binlog %s: %s", verdict.binlog, visible(text), extra=extra)

    def _read_kept(self) -> None:
        """Take the verdicts that are kept: those on tables that are gone are not there any more."""
        definitions = StoreReader(self._data_dir).definitions()
        self._verdicts = {
            name: {
                (each.table, each.server): each
                for each in KeptVerdicts(proof_directory(self._data_dir, definition.log_id))
            }
            for name, definition in definitions.items()
        }

    def _failed(self, text: str) -> None:
        text = " ".join(text.split()).removeprefix("binlane: ")
        if text != self.problem:
            logger.warning("comparisons: %s", visible(text))
        self.problem = text

    async def _kill(self) -> None:
        process, self._process = self._process, None
        if process is not None and process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()


def registered_urls(
    settings: VerifySettings, scheme: str, registered: Iterable[tuple[str, str, int]]
) -> list[str]:
    """The URLs of replicas that registered, if there is an account for them.

    Args:
        settings: Settings that name the account.
        scheme: Scheme of the source's URL.
        registered: Binlog, host and port of each, as the replica says; any text may be a host.
    """
    if not settings.replica_user:
        return []
    found = []
    for binlog, host, port in registered:
        if _HOST.fullmatch(host) is None:
            logger.warning(
                "comparisons: a replica of binlog %s registered with %r, which is no host's name:"
                " set its report_host",
                binlog,
                visible(host),
                extra={"binlog": binlog},
            )
            continue
        url = ServerUrl(user=settings.replica_user, host=host, port=port, scheme=scheme)
        found.append(f"{_uri(url, settings.replica_password_file)}#{binlog}")
    return found


def _waited_s(process_id: int) -> float:
    """Time that a process was ready to run and had no processor; 0 where the system does not tell."""
    try:
        schedule = Path(f"/proc/{process_id}/schedstat").read_text(encoding="ascii").split()
        return int(schedule[1]) / 1e9
    except (OSError, ValueError, IndexError):
        return 0.0


async def _text_of(process: Process) -> str:
    """The last of what a process says on its standard error."""
    assert process.stderr is not None, "it is a pipe"
    said = b""
    while piece := await process.stderr.read(4096):
        said = (said + piece)[-_FAILURE_TEXT_MAX:]
    return said.decode(errors="replace")


def _uri(url: ServerUrl, password_file: Path | None) -> str:
    if password_file is None:
        return url.text
    return server_uri(url.text, {PASSWORD_FILE: str(password_file.absolute())})
