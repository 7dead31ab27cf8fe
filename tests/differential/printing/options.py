"""Random command lines for a log, and what of two texts is to be equal.

`docs/reference/text.md` lists the differences on purpose; each has its predicate or its rule here.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final

from binlane.log.codec.event import Event
from binlane.log.codec.mysql_transaction import MysqlGtidEvent
from binlane.log.codec.rows import RowsEvent
from binlane.log.codec.transaction import GtidEvent
from binlane.log.grouping.walk import walk

_COMMON: Final = (
    (0.06, ("--short-form",)),
    (0.1, ("--hexdump",)),
    (0.25, ("--print-table-metadata",)),
    (0.1, ("--disable-log-bin",)),
    (0.1, ("--set-charset=utf8mb4",)),
    (0.05, ("--force-if-open",)),
    (0.6, ("-v", "-vv", "-vvv")),
    (0.35, ("--base64-output=decode-rows", "--base64-output=auto", "--base64-output=never")),
    (0.1, ("--database=d", "--database=e", "--database=o d", "--database=nothing")),
    (0.12, ("--rewrite-db=e->renamed", "--rewrite-db=d->x", "--rewrite-db=o d->e")),
    (0.04, ("--offset=0", "--offset=1", "--offset=3", "--offset=10", "--offset=50")),
)
_OF_FLAVOR: Final = {
    "mariadb": (
        (0.1, ("--skip-annotate-row-events",)),
        (0.1, ("--skip-print-row-count",)),
        (0.1, ("--skip-print-row-event-positions",)),
        (0.05, ("--do-domain-ids=0", "--do-domain-ids=1", "--do-domain-ids=0,2")),
        (0.05, ("--ignore-domain-ids=0", "--ignore-domain-ids=1,2")),
        (0.08, ("--do-server-ids=1", "--server-id=2", "--server-id=1,3", "--ignore-server-ids=2")),
        (0.08, ("--table=t1", "--table=am", "--table=types", "--table=nothing")),
    ),
    "mysql": (
        (0.1, ("--skip-gtids",)),
        (0.08, ("--idempotent",)),
        (0.03, ("--require-row-format",)),
        (0.06, ("--server-id=1", "--server-id=2")),
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What options can name in some files.

    Attributes:
        flavor: `mariadb` or `mysql`.
        places: Of each file, where its events begin and end.
        starts: Of the first file, where events begin that no TABLE_MAP must stand before.
        times: Of events, seconds since 1970.
        gtids: As they are written.
    """

    flavor: str
    places: tuple[tuple[int, ...], ...]
    starts: tuple[int, ...]
    times: tuple[int, ...]
    gtids: tuple[str, ...]

    @classmethod
    def of(cls, flavor: str, logs: Sequence[bytes]) -> Facts:
        """Read them from files."""
        events = [list(walk([data], file="log")) for data in logs]
        return cls(
            flavor=flavor,
            places=tuple(
                tuple(place for event in each for place in (event.position, event.next_position))
                for each in events
            ),
            starts=tuple(
                event.position for event in events[0] if not isinstance(event.body, RowsEvent)
            ),
            times=tuple(sorted({event.header.timestamp for each in events for event in each})),
            gtids=tuple(gtid for each in events for event in each if (gtid := _gtid(event))),
        )


def _gtid(event: Event) -> str | None:
    body = event.body
    if isinstance(body, GtidEvent):
        return str(body.gtid(event.header.server_id))
    return str(body.gtid) if isinstance(body, MysqlGtidEvent) and body.gtid else None


def draw(random: Random, facts: Facts) -> list[str]:
    """Options of the tool of the files' flavor."""
    kinds = (*_COMMON, *_OF_FLAVOR[facts.flavor])
    options = [random.choice(choices) for share, choices in kinds if random.random() < share]
    more: tuple[tuple[float, Callable[[Random, Facts], list[str]]], ...] = (
        (0.1, _times),
        (0.25, _positions),
        (0.15, _gtids_of_mariadb if facts.flavor == "mariadb" else _gtids_of_mysql),
    )
    for share, function in more:
        if random.random() < share:
            options += function(random, facts)
            break
    return options


def _times(random: Random, facts: Facts) -> list[str]:
    which = random.choice(("start", "stop"))
    moment = random.choice(facts.times) + random.choice((0, 0, 1))
    return [f"--{which}-datetime={time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(moment))}"]


def _positions(random: Random, facts: Facts) -> list[str]:
    options = []
    which = random.choice(("start", "stop", "both"))
    if which != "stop":
        options.append(f"--start-position={random.choice(facts.starts)}")
    if which != "start":
        end = facts.places[-1][-1]
        beyond = random.choice((0, 0, 0, 0, 1, 1000))
        place = random.choice((random.choice(facts.places[-1]), end)) + beyond
        options.append(f"--stop-position={place}")
    return options


def _gtids_of_mariadb(random: Random, facts: Facts) -> list[str]:
    """A stop; a start must name all domains of the log, and is an error else."""
    k = min(3, len(facts.gtids))
    last = {gtid.partition("-")[0]: gtid for gtid in random.sample(facts.gtids, k)}
    return [f"--stop-position={','.join(last.values())}"] if last else []


def _gtids_of_mysql(random: Random, facts: Facts) -> list[str]:
    if not facts.gtids:
        return []
    chosen = random.sample(facts.gtids, min(len(facts.gtids), random.choice((1, 2, 5))))
    source, _, number = chosen[0].rpartition(":")
    names = random.choice((",".join(chosen), f"{source}:1-{number}"))
    return [f"--{random.choice(('include', 'exclude'))}-gtids={names}"]


_FILTERS: Final = re.compile(
    r"--(database|table|server-id|(do|ignore)-|(include|exclude)-gtids|stop-position=\d+-)"
)
_PLACE: Final = re.compile(r"# at \d+")
_USE: Final = re.compile(r"use `.*`/\*!\*/;")
_TABLE_MAP: Final = re.compile(r"(.*\tTable_map: .*)")
_CHECKSUM: Final = re.compile(r" CRC32 0x[0-9a-f]{8}")
_BASE64: Final = re.compile(r"[A-Za-z0-9+/]{1,76}={0,2}")
_DUMP: Final = re.compile(r"#( +[0-9a-f]+ | Position|  +\|Timestamp|$)")
_ADDED: Final = re.compile(r"(COMMIT|BEGIN|ROLLBACK) /\* ?added by mysqlbinlog \*/")
_XA_PREPARE: Final = re.compile(r"#.*\tXA PREPARE .*")
_DUMPED_VALUE: Final = re.compile(r"#[^\n]*\n((?:# [^\n]*\n)+?# \t(?:Intvar|Rand|User_var)\n)")
"""With `--hexdump`, where what an event is stands behind its bytes."""
_NEXT_HEAD: Final = re.compile(
    r"DELIMITER /\*!\*/;\n(?:# at \d+\n)?#[^\n]*\tStart: binlog [^\n]*\n"
    r"(?:BINLOG '\n[^']*'/\*!\*/;\n)?(?:#[^\n]*\n)*DELIMITER ;\n(?=# End of log file)"
)
"""Of a MariaDB file behind the one with which a GTID as the stop ends."""
_VALUE: Final = re.compile(
    r"#.*\t(Intvar|Rand|User_var)|SET ((LAST_)?INSERT_ID=|@@RAND_SEED1=|@`).*|"
    r"SET @@session.character_set_client=.*|/\*!\\C .*"
)
_OF_THE_LOG: Final = re.compile(r"#.*\t(Rotate to|Binlog checkpoint|Stop|Gtid list)\b.*|# \d+-.*")


def is_compared(options: Sequence[str], flavor: str) -> bool:
    """Whether the texts can be equal at all.

    MySQL's rows end the text with `--base64-output=never`, and its addresses are wrong behind a
    start position; what a filter leaves out is there in part.
    """
    words = " ".join(options)
    has_bytes, is_filtered = "--hexdump" in words, bool(_FILTERS.search(words))
    if flavor == "mysql":
        stops = "never" in words or "--require-row-format" in words
        tells_statements = "-vv" in words and "--database" in words
        return not (stops or tells_statements or (has_bytes and "--start-position" in words))
    is_of_two = "server-id" in words and "domain-ids" in words
    # They may begin inside of a group.
    starts = "--offset" in words or ("--start-position" in words and is_filtered)
    return not (is_of_two or starts or (has_bytes and (is_filtered or "--rewrite-db" in words)))


def essence(  # noqa: C901  # one rule a difference
    text: bytes, options: Sequence[str], flavor: str
) -> list[str]:
    """The lines of a text that the other one must have, too."""
    words = " ".join(options)
    is_mysql, is_filtered = flavor == "mysql", bool(_FILTERS.search(words))
    decoded = _in_one_place(text.decode("utf-8", "surrogateescape"), words, flavor)
    lines = decoded.split("\n")
    if is_filtered:
        lines = [line for line in lines if not _PLACE.fullmatch(line)]
    if is_filtered or (is_mysql and "Execute_load_query" in decoded):
        # Values of statements that are left out stay there, or come with a later statement.
        lines = [line for line in lines if not _VALUE.fullmatch(line)]
    if is_filtered and not is_mysql:
        lines = [line for line in lines if not _OF_THE_LOG.fullmatch(line)]
    if is_mysql and "--database" in words:
        lines = [line for line in lines if not _ADDED.match(line)]
    if is_mysql and "--start-position" in words:
        lines = [line for line in lines if not _PLACE.fullmatch(line)]
    if not is_mysql and "--start-position" in words:
        lines = [line for line in lines if not _USE.fullmatch(line)]
    if is_mysql and "--short-form" in words:
        lines = [line for line in lines if not _XA_PREPARE.fullmatch(line)]
    if "--hexdump" in words:
        # MariaDB's of ANNOTATE_ROWS stand at another address, MySQL's before LOAD DATA elsewhere.
        lines = [line for line in lines if not _DUMP.match(line)]
    if is_mysql:
        lines = [_TABLE_MAP.sub(lambda match: match[1].replace("``", "`"), line) for line in lines]
    else:
        if "--rewrite-db" in words:
            lines = [_CHECKSUM.sub("", line) for line in lines if not _BASE64.fullmatch(line)]
        if "--print-table-metadata" in words:
            lines = [line for line in lines if not _is_compressed_type(line)]
    return lines


def _in_one_place(text: str, words: str, flavor: str) -> str:
    """Without what the tools have elsewhere, or over, and that is more than a line."""
    if flavor == "mysql" and "--hexdump" in words and "Execute_load_query" in text:
        return _DUMPED_VALUE.sub(r"\1", text)
    if flavor == "mariadb" and _FILTERS.search(words):
        return _NEXT_HEAD.sub("", text)
    return text


def _is_compressed_type(line: str) -> bool:
    return "INVALID_TYPE(" in line or " COMPRESSED" in line
