"""A port under load that is killed, as are its sessions and its source; what its binlogs hold then.

At the end every group of the source's own log must be in every binlog once and in order, but for
those that are binlane's own, and every binlog must make the tables that the source's log makes.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from itertools import islice, pairwise
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import pymysql

from binlane.binlogs.store.stored_groups import read_groups
from binlane.binlogs.store.verify import verify
from binlane.live.provision.private_server import PrivateServer
from tests.live_oracle import is_own, source_files
from tests.port_load import PortLoad
from tests.port_replicas import SAFE, FollowedBinlogs
from tests.serve_process import worker_processes
from tests.servers import execute

_KILLS: Final = {"mariadb": ("", "QUERY ", "HARD ", "SOFT "), "mysql": ("", "QUERY ")}
_SESSIONS: Final = "SELECT id FROM information_schema.processlist WHERE user = 'root' AND db = 'd'"


class PortStory:
    """The servers and processes of one run.

    Attributes:
        load: The sessions.
        counts: What was done to whom.
    """

    def __init__(
        self,
        directory: Path,
        *,
        seed: int,
        through: int = 4,
        beside: int = 1,
        pause_s: float = 0.02,
        workers: int = 1,
        flavor: str = "mariadb",
    ) -> None:
        """Start all.

        Args:
            directory: Where it all lives.
            seed: Of what is done by lot, but for when it strikes.
            through: Sessions through the port.
            beside: Sessions directly on the source.
            pause_s: As `PortLoad`.
            workers: Processes of the port.
            flavor: `mariadb` or `mysql`.
        """
        self.counts: Counter[str] = Counter()
        self._chance = random.Random(seed)
        self._stack = ExitStack()
        self._source_was_killed = False
        try:
            self.binlogs = FollowedBinlogs(
                self._stack, directory, SAFE, flavor=flavor, begins=False, workers=workers
            )
            self.load = PortLoad(
                self.binlogs.serve,
                seed=seed,
                through=through,
                beside=beside,
                is_safe=True,
                pause_s=pause_s,
            )
            self._behind = len(source_groups(self.binlogs.source))
            self.load.prepare()
        except BaseException:
            self._stack.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stack.close()

    def live(self, longest_s: float) -> None:
        """Let all go on for a while, by lot."""
        time.sleep(self._chance.uniform(0.05, longest_s))

    def kill_serve(self) -> None:
        """SIGKILL; a new process takes over."""
        self.binlogs.serve.kill()
        if self._chance.random() < 0.3:
            # One that does not come to listen.
            self.binlogs.serve.spawn()
            self.live(0.8)
            self.binlogs.serve.kill()
            self.counts["kills of serve"] += 1
        self.binlogs.serve.start()
        self.counts["kills of serve"] += 1

    def kill_worker(self) -> None:
        """SIGKILL for one of several processes that serve the port; another one takes its place."""
        with suppress(ProcessLookupError):
            workers = worker_processes(self.binlogs.serve)
            if workers:
                os.kill(self._chance.choice(workers), signal.SIGKILL)
                self.counts["kills of workers"] += 1

    def kill_session(self) -> None:
        """KILL for a session or for its statement, whichever comes up."""
        with suppress(pymysql.MySQLError):
            sessions = execute(self.binlogs.source, _SESSIONS)
            if sessions:
                (number,) = self._chance.choice(sessions)
                what = self._chance.choice(_KILLS[self.binlogs.flavor])
                execute(self.binlogs.source, f"KILL {what}{number}")
                self.counts["kills of sessions"] += 1

    def restart_source(self) -> None:
        """Let the source end, whatever its transactions, and come again."""
        self.binlogs.source.restart()
        self.counts["restarts of the source"] += 1

    def kill_source(self) -> None:
        """SIGKILL for the source."""
        self.binlogs.source.kill()
        self.binlogs.source.restart()
        self._source_was_killed = True
        self.counts["kills of the source"] += 1

    def problems(self) -> list[str]:
        """What binlogs hold that they must not, or lack, a line each; behind the load's end."""
        serve, source = self.binlogs.serve, self.binlogs.source
        names = [one.lower() for one in SAFE]
        for name in names:
            serve.wait_until_complete(name, timeout_s=120)
        found = [str(fault) for fault in verify([serve.data_dir])]
        wanted = dict(islice(source_groups(source).items(), self._behind, None))
        for name in names:
            found += out_of_order(name, list(wanted), serve.gtids(name), wanted)
        # Of what was not logged before the source was killed its own log tells nothing.
        found += (
            self.binlogs.problems(self.binlogs.logged())
            if self._source_was_killed
            else self.binlogs.problems_by_log()
        )
        if "Traceback" in serve.log:
            found.append(serve.log[serve.log.index("Traceback") :][:4000])
        return found


def source_groups(source: PrivateServer) -> dict[str, bool]:
    """The GTIDs of the source's log in order, and whether the group is of binlane's own tables."""
    groups = read_groups(list(map(Path, source_files(source))))
    return {str(group.gtid): is_own(group) for group in groups if group.gtid is not None}


def out_of_order(
    name: str, wanted: list[str], held: list[str], is_own: Mapping[str, bool]
) -> list[str]:
    """How the GTIDs of a binlog differ from those of the source."""
    places = {gtid: number for number, gtid in enumerate(wanted)}
    found = [f"{name}: {gtid} twice" for gtid, count in Counter(held).items() if count > 1]
    found += [f"{name}: {gtid} is not the source's" for gtid in held if gtid not in places]
    numbers = [places[gtid] for gtid in held if gtid in places]
    found += [
        f"{name}: {wanted[after]} behind {wanted[before]}"
        for before, after in pairwise(numbers)
        if after < before
    ]
    has = set(numbers)
    found += [
        f"{name}: lacks {gtid}"
        for number, gtid in enumerate(wanted)
        if number not in has and not is_own[gtid]
    ]
    return found
