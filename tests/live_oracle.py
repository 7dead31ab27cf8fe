"""What binlogs must hold, from the source's own files and the history of their definitions.

`binlane route` reads the files of the source and makes the binlogs anew, each definition at the GTID
where the history has it: whatever happened to `serve` meanwhile, its binlogs hold the same groups.
"""

from __future__ import annotations

import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Collection, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path

from binlane.binlogs.store.stored_groups import StoreReader, read_groups
from binlane.live.provision.private_server import PrivateServer
from binlane.live.provision.server_programs import MARIADB
from binlane.log.codec.body import Body
from binlane.log.codec.mysql_transaction import MysqlGtidEvent
from binlane.log.codec.rows import TableMapEvent
from binlane.log.codec.types import EventType
from binlane.log.grouping.event_group import EventGroup
from binlane.positions import AnyGtid, MysqlGtid
from tests.servers import execute

_OWN = b"binlane"
_ANCHOR = "oracle-anchor"
"""`route` wants a binlog from the beginning."""


@dataclass(frozen=True, slots=True)
class Change:
    """A statement on a binlog and where it took effect.

    Attributes:
        gtids: What the source had done then.
        statement: SQL.
    """

    gtids: str
    statement: str


def history(data_dir: Path) -> list[Change]:
    """What happened to the binlogs that there are, in order."""
    with closing(sqlite3.connect(data_dir / "binlane.sqlite3")) as catalog:
        rows = catalog.execute(
            "SELECT name, change, gtids, log_all_dbs, log_list, ignore_list"
            " FROM binlog_scope_history"
            " WHERE log_id IN (SELECT log_id FROM binlogs) ORDER BY rowid"
        ).fetchall()
    changes = []
    for name, change, gtids, log_all, log, ignore in rows:
        verb = "CREATE" if change == "create" else "ALTER"
        clauses = _clauses(change, "ALL" if log_all else log, ignore)
        changes.append(Change(gtids, f"{verb} BINLOG '{name}' {clauses};"))
    return changes


def _clauses(change: str, log: str, ignore: str) -> str:
    """The clauses that make a scope of its two lists, whatever it was before."""
    is_new = change == "create"
    ignored = [f"{'' if is_new else 'ADD '}IGNORE({ignore})"] if ignore else []
    if log == "ALL":
        return ", ".join(ignored if is_new and ignored else ["LOG ALL", *ignored])
    if not log:
        return "IGNORE ALL"
    return ", ".join([f"LOG({log})" if is_new else f"IGNORE ALL, ADD LOG({log})", *ignored])


def source_files(source: PrivateServer) -> list[str]:
    """The files of a source's binlog, oldest first."""
    index = source.data_directory / "binlog.index"
    return [str(source.data_directory / line[2:]) for line in index.read_text().split()]


def expected(source: PrivateServer, data_dir: Path, out: Path) -> dict[str, list[Path]]:
    """Make the binlogs of a store anew; their files by name."""
    blocks: dict[str, list[str]] = {}
    for change in history(data_dir):
        blocks.setdefault(change.gtids, []).append(change.statement)
    lines = [f"CREATE BINLOG '{_ANCHOR}' IGNORE ALL;", *blocks.pop("", [])]
    for gtids, statements in blocks.items():
        # Of one domain, or one MySQL server: its last one. Rows of tables have others.
        own = [part for part in gtids.split(",") if part.strip().startswith(_source_of(source))]
        gtid = re.sub(r":.*?(\d+)$", r":\1", own[-1].strip())
        lines += [f"-- @at-gtid {gtid}", *statements]
    definitions = out / "definitions.sql"
    out.mkdir(parents=True)
    definitions.write_text("\n".join([*lines, ""]))
    command = (sys.executable, "-m", "binlane", "route", *source_files(source))
    done = subprocess.run(
        [*command, "--binlogs", str(definitions), "--out", str(out / "binlogs"), "--quiet"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return {
        name: sorted(path for path in (out / "binlogs" / name).iterdir() if path.suffix != ".index")
        for name in StoreReader(data_dir).names()
    }


def _source_of(server: PrivateServer) -> str:
    """The beginning of all GTIDs of a server: its domain, or its UUID."""
    is_mariadb = server.program is MARIADB
    variable = "@@gtid_domain_id" if is_mariadb else "@@server_uuid"
    ((value,),) = execute(server, f"SELECT {variable}")
    return f"{value}-" if is_mariadb else str(value)


def _comparable(group: EventGroup) -> list[object]:
    """A group without what hangs on its place in a file, or on when capture connected."""
    return [
        (replace(event.header, length=0, next_position=0), _without_clock(event.body))
        for event in group.events
    ]


def _without_clock(body: Body) -> Body:
    """MySQL's logical clock begins anew with each connection, behind what a binlog has."""
    if isinstance(body, MysqlGtidEvent):
        return replace(body, last_committed=0, sequence_number=0)
    return body


def is_own(group: EventGroup) -> bool:
    """Whether a group of the source is of binlane's own tables, which binlogs do not hold."""
    maps = [event.body for event in group.events if isinstance(event.body, TableMapEvent)]
    return bool(maps) and all(one.database.encode() == _OWN for one in maps)


def _groups(paths: list[Path]) -> Iterator[EventGroup]:
    groups = (group for group in read_groups(paths) if not group.is_control)
    return (group for group in groups if not is_own(group))


def _without_rows(
    groups: Iterator[EventGroup], wanted: list[EventGroup]
) -> tuple[list[EventGroup], set[AnyGtid | None]]:
    """Leave out the rows of tables that came in, whose GTIDs are not the source's.

    Returns:
        The groups of the source, and the GTIDs before which such rows stand.
    """
    origins = {_origin(group.gtid) for group in wanted if group.gtid is not None}
    kept: list[EventGroup] = []
    arrived: set[AnyGtid | None] = set()
    has_rows = False
    for group in groups:
        if group.gtid is not None and _origin(group.gtid) not in origins:
            has_rows = True
            continue
        if has_rows:
            arrived.add(group.gtid)
        has_rows = False
        kept.append(group)
    return kept, arrived


def _origin(gtid: AnyGtid) -> str:
    return gtid.source_id if isinstance(gtid, MysqlGtid) else str(gtid.domain_id)


def _is_incident(group: EventGroup) -> bool:
    return any(event.header.type_code == EventType.INCIDENT for event in group.events)


def differences(
    source: PrivateServer, data_dir: Path, out: Path, *, names: Collection[str] = ()
) -> list[str]:
    """How the binlogs of a store differ from what they must hold, one line each.

    Args:
        source: That writes no more.
        data_dir: Of a store whose binlogs are complete.
        out: A directory to be made; is removed where nothing differs.
        names: Of binlogs of rows; all if empty.
    """
    found = []
    store = StoreReader(data_dir)
    for name, paths in expected(source, data_dir, out).items():
        if names and name not in names:
            continue
        wanted = list(_groups(paths))
        held, arrived = _without_rows(_groups([file.path for file in store.files(name)]), wanted)
        for number, (is_there, must) in enumerate(zip_longest(held, wanted)):
            if is_there is None or must is None:
                extra = must or is_there
                what = "lacks" if is_there is None else "has more:"
                found.append(f"{name}: {what} {extra and extra.gtid} and what follows ({number})")
                break
            if is_there.gtid == must.gtid and is_there.gtid in arrived and _is_incident(must):
                continue  # `route` asks no source; its replicas tell whether the rows are right
            if _comparable(is_there) != _comparable(must):
                at = f"{is_there.file}:{is_there.position}"
                what = f"holds {is_there.gtid} at {at}, must hold {must.gtid}"
                found.append(f"{name}: group {number}: {what}{_what_differs(is_there, must)}")
                break
    if not found:
        shutil.rmtree(out)
    return found


def _what_differs(held: EventGroup, must: EventGroup) -> str:
    if held.gtid != must.gtid:
        return ""
    has, wants = ([e.header.type_name for e in group.events] for group in (held, must))
    if has != wants:
        return f": {has} for {wants}"
    pairs = zip(held.events, must.events, strict=True)
    return next((f": {pair}" for pair in pairs if pair[0].body != pair[1].body), " in a header")
