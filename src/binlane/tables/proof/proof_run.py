"""One round of comparisons: the binlogs of a store, table by table, with the source and replicas."""

from __future__ import annotations

import fcntl
import os
import shutil
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from binlane.binlogs.routing.cut_group import MARKS
from binlane.binlogs.store.disk import unusable
from binlane.binlogs.store.fills import STAGING_PREFIX
from binlane.binlogs.store.stored_groups import StoreReader
from binlane.errors import ConfigError, PeerError, StoreLockedError
from binlane.names import TableName
from binlane.tables.proof.compared_server import ComparedServer, Pace, ServerAddress
from binlane.tables.proof.comparison import Comparison
from binlane.tables.proof.described_binlog import DescribedBinlog
from binlane.tables.proof.kept_verdicts import (
    PROOF_DIRECTORY,
    KeptVerdicts,
    VerdictKey,
    proof_directory,
)
from binlane.tables.proof.progress_waits import ComparisonLimits
from binlane.tables.proof.replica_comparison import ReplicaComparison
from binlane.tables.proof.table_comparisons import TableComparisons
from binlane.tables.proof.verdicts import ComparisonOutcome, ComparisonStep, TableVerdict
from binlane.tables.ranges.served_logs import ServerPlace

_LOCK_FILE: Final = "lock"
_SAVE_S: Final = 1.0
"""Time between two savings of a binlog's digests."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProofPlan:
    """The binlogs and servers that a round compares.

    Attributes:
        data_dir: Directory of the binlogs' store.
        binlogs: Names of the binlogs; all if empty.
        source: URL of the source, as of `ServerPlace`.
        replicas: URLs of replicas; `#NAME` behind one names the binlog that it follows.
        rows_per_s: Rows that are read of a server a second at most; 0 for any number.
        is_anew: True if the digests so far are forgotten.
        limits: Limits that hold for each comparison.
    """

    data_dir: Path
    binlogs: tuple[str, ...] = ()
    source: str
    replicas: tuple[str, ...] = ()
    rows_per_s: int = 0
    is_anew: bool = False
    limits: ComparisonLimits = field(default_factory=ComparisonLimits)


def prove(plan: ProofPlan) -> Iterator[TableVerdict]:
    """Compare the tables of a store's binlogs with servers.

    Args:
        plan: The binlogs and servers to compare.

    Yields:
        The verdict on each table and server, as soon as it is there and kept.

    Raises:
        ConfigError: If a URL or a binlog's name is none.
        PeerError: If the source cannot be asked; a replica's trouble is in its verdicts.
        CodecError: With file and position, if a binlog is damaged.
        StoreError: If the store cannot be read, or the results cannot be kept.
        StoreLockedError: If another process compares this store.
    """
    store = StoreReader(plan.data_dir)
    # Those that only keep changes while tables are read are nobody's.
    names = plan.binlogs or [name for name in store.names() if not name.startswith(STAGING_PREFIX)]
    unknown = sorted(set(names) - set(store.names()))
    if unknown:
        raise ConfigError(
            f"there is no binlog {unknown[0]}",
            key="verify",
            hint=f"the binlogs are: {', '.join(store.names()) or 'none'}",
        )
    source = _address(plan.source, is_source=True)
    replicas = [
        (ServerPlace.parse(url).file, _address(url, is_source=False)) for url in plan.replicas
    ]
    with _locked(plan.data_dir), ExitStack() as stack:
        _remove_dropped(plan.data_dir, store)
        pace = Pace(plan.rows_per_s)
        server = ComparedServer(source, pace)
        stack.callback(server.close)
        for name in names:
            own = [address for binlog, address in replicas if binlog in ("", name)]
            yield from _Round(plan, store, name, pace).run(server, own)


def _address(url: str, *, is_source: bool) -> ServerAddress:
    place = ServerPlace.parse(url)
    return ServerAddress(uri=url, url=place.url, password=place.password(), is_source=is_source)


@contextmanager
def _locked(data_dir: Path) -> Iterator[None]:
    """Be the only process that compares this store."""
    path = data_dir / PROOF_DIRECTORY / _LOCK_FILE
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise unusable(error, path) from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StoreLockedError(
                "another process is comparing this store",
                path=str(path),
                hint="wait for its end; `serve` compares by itself where [verify] every is set",
            ) from None
        yield
    finally:
        os.close(descriptor)


def _remove_dropped(data_dir: Path, store: StoreReader) -> None:
    """Remove what is kept of binlogs that are no more."""
    known = {str(definition.log_id) for definition in store.definitions().values()}
    for path in (data_dir / PROOF_DIRECTORY).iterdir():
        if path.is_dir() and path.name not in known:
            shutil.rmtree(path, ignore_errors=True)


class _Round:
    """The comparisons of one binlog."""

    def __init__(self, plan: ProofPlan, store: StoreReader, name: str, pace: Pace) -> None:
        self._plan = plan
        self._pace = pace
        log_id = store.definitions()[name].log_id
        self._directory = proof_directory(plan.data_dir, log_id)
        self._binlog = DescribedBinlog(store, name, self._directory)
        if plan.is_anew:
            self._binlog.forget()
        self._verdicts = KeptVerdicts(self._directory)
        self._done: set[VerdictKey] = set()

    def run(
        self, source: ComparedServer, replicas: Sequence[ServerAddress]
    ) -> Iterator[TableVerdict]:
        """Compare with the source, and then with replicas."""
        binlog = self._binlog
        self._plan.limits.observe(
            ComparisonStep(binlog=binlog.name, doing="following the binlog", since_s=time.time())
        )
        binlog.advance(binlog.mark)
        tables = self._tables(source)
        comparison = Comparison(binlog, source, self._directory, self._plan.limits)
        yield from self._compare(source, comparison, tables)
        for address in replicas:
            try:
                replica = ComparedServer(address, self._pace)
            except PeerError as error:
                yield from self._unreachable(address, tables, error)
                continue
            try:
                direct = ReplicaComparison(
                    binlog, source, replica, self._directory, self._plan.limits
                )
                yield from self._compare(replica, direct, tables)
            except PeerError as error:
                yield from self._unreachable(address, tables, error)
            finally:
                replica.close()
        self._verdicts.keep_only(self._done)
        binlog.save()
        self._remove_old_files()

    def _remove_old_files(self) -> None:
        """Remove the rows' hashes of tables that are gone, and what a kill left."""
        bases = {table.base for table in self._binlog.described.tables.values()}
        for path in self._directory.iterdir():
            is_hashes = path.suffix in {".rows", ".read", ".draft", ".changed"}
            if is_hashes and path.name not in bases:
                path.unlink(missing_ok=True)

    def _tables(self, source: ComparedServer) -> list[TableName]:
        scope = self._binlog.definition.scope
        there = {name for name in source.tables() if scope.includes(name)}
        # Views and temporary tables are in texts as tables are, and nowhere else.
        described = self._binlog.described.tables.items()
        known = there | {name for name, table in described if table.layout or table.is_whole}
        known.discard(MARKS)
        keys = {scope.key(name) for name in known}
        named = {name for name in scope.log_tables if scope.includes(name) and name not in keys}
        return sorted(known | named)

    def _compare(
        self,
        server: ComparedServer,
        comparisons: TableComparisons,
        tables: Collection[TableName],
    ) -> Iterator[TableVerdict]:
        there = set(server.tables())
        begun = []
        for name in tables:
            is_known = name in self._binlog.described.tables or not server.address.is_source
            if name in there or is_known:
                begun.append((name, name in there))
                continue
            reason = (
                "the server has no such table, or the account may not see it "
                f"(GRANT SELECT ON {name} TO the account)"
            )
            yield self._kept(comparisons.not_compared(name, reason))
        saved_s = time.monotonic()
        for verdict in comparisons.verdicts(begun):
            # All digests are saved, however many tables there are.
            if time.monotonic() - saved_s > _SAVE_S:
                self._binlog.save()
                saved_s = time.monotonic()
            yield self._kept(verdict)
        self._binlog.save()

    def _unreachable(
        self, address: ServerAddress, tables: Collection[TableName], error: PeerError
    ) -> Iterator[TableVerdict]:
        for name in tables:
            if (name.plain, address.label) in self._done:
                continue
            yield self._kept(self._not_compared(name, address.label, str(error)))

    def _not_compared(self, name: TableName, server: str, reason: str) -> TableVerdict:
        return TableVerdict(
            binlog=self._binlog.name,
            table=name.plain,
            server=server,
            finding=ComparisonOutcome.NOT_COMPARED,
            reason=reason,
        )

    def _kept(self, verdict: TableVerdict) -> TableVerdict:
        self._done.add((verdict.table, verdict.server))
        return self._verdicts.put(verdict)
