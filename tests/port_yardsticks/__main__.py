"""Run recorded decisions through the port: `python -m tests.port_yardsticks --sample 300 --report`.

Prints the agreement per format, and with `--report` each record that differs. A memory file system
as directory makes it several times as fast.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TextIO

from tests.port_yardsticks.running import Compared, counted, sampled, yardsticks
from tests.yardsticks.records import FLAVORS, Record

_TOLD_EVERY = 200


def main(arguments: Sequence[str] | None = None) -> None:
    """Run, compare and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.port_yardsticks", description=__doc__)
    parser.add_argument("flavor", nargs="?", choices=FLAVORS, default="mariadb")
    parser.add_argument("--sample", type=int, metavar="N", help="records by lot; all by default")
    parser.add_argument("--seed", type=int, default=0, help="of the lot")
    parser.add_argument("--only", default="", metavar="TEXT", help="in the names of records")
    parser.add_argument("--format", default="", help="records of this binlog_format only")
    parser.add_argument("--context", default="", help="records of this context only")
    parser.add_argument("--report", action="store_true", help="print what differs")
    parser.add_argument("--by-session", action="store_true", help="sessions set binlog_format")
    parser.add_argument(
        "--mismatches",
        type=Path,
        metavar="FILE",
        help="write all that differs, as it comes, with the reason of what is meant to",
    )
    parser.add_argument(
        "--again", type=Path, metavar="FILE", help="those that FILE has without a reason only"
    )
    parser.add_argument("--replica", action="store_true", help="compare one of the binlog, too")
    parser.add_argument("--reason", default="", metavar="TEXT", help="with --again, that FILE has")
    parser.add_argument("--directory", type=Path, help="where servers and binlogs live")
    parser.add_argument("--plugins", type=Path, help="MariaDB's, for BLACKHOLE and ARCHIVE")
    chosen = parser.parse_args(arguments)
    directory = Path(tempfile.mkdtemp(prefix="port-yardsticks-", dir=chosen.directory))
    try:
        _compare(chosen, directory)
    finally:
        shutil.rmtree(directory)


def _compare(chosen: argparse.Namespace, directory: Path) -> None:
    wanted = _wanted(chosen)
    done: list[Compared] = []
    began_s = time.monotonic()
    with ExitStack() as stack:
        lines: TextIO | None = None
        if chosen.mismatches is not None:
            lines = stack.enter_context(chosen.mismatches.open("w", encoding="utf-8"))
        ready = stack.enter_context(
            yardsticks(
                *(chosen.flavor, directory),
                by_session=chosen.by_session,
                plugins=chosen.plugins,
            )
        )
        if chosen.replica:
            stack.enter_context(ready.followed())
        able = [record for record in wanted if ready.can_run(record)]
        for record in able:
            done.append(ready.compare_twice(record))
            if lines is not None:
                _write(lines, done[-1])
            if len(done) % _TOLD_EVERY == 0:
                _say(f"{len(done)} of {len(able)}, {time.monotonic() - began_s:.0f} s")
        log = ready.log
    for name, count in counted(done).items():
        others = ", ".join(
            f"{what} {number}"
            for what, number in count.most_common()
            if what not in {"agree", "compared"}
        )
        _say(f"{chosen.flavor} {name}: {count['agree']} of {count['compared']} agree; {others}")
    if chosen.replica:
        _report_replica(done)
    _say(f"differed in a first run only: {sum(each.is_second for each in done)}")
    _say(f"left out for want of an engine: {len(wanted) - len(able)}")
    if "Traceback" in log:
        _say(log[log.index("Traceback") :][:4000])
    if chosen.report:
        _report(done)
        _report_reasons(done)


def _wanted(chosen: argparse.Namespace) -> list[Record]:
    """The records that were asked for."""
    wanted = [
        record
        for record in sampled(chosen.flavor, None, 0)
        if chosen.only in record.name
        and chosen.format.upper() in ("", record.settings["binlog_format"])
        and chosen.context in ("", record.context)
    ]
    if chosen.sample is not None:
        kept = {record.number for record in sampled(chosen.flavor, chosen.sample, chosen.seed)}
        wanted = [record for record in wanted if record.number in kept]
    if chosen.again is not None:
        found = map(json.loads, chosen.again.read_text(encoding="utf-8").splitlines())
        numbers = {
            each["number"]
            for each in found
            if (chosen.reason in each["exception"] if chosen.reason else not each["exception"])
        }
        wanted = [record for record in wanted if record.number in numbers]
    return wanted


def _report(done: Sequence[Compared]) -> None:
    groups: dict[tuple[str, str], Counter[str]] = {}
    for each in _differing(done):
        record = each.record
        aspects = ", ".join(difference.aspect for difference in each.differences)
        key = (record.name, aspects)
        groups.setdefault(key, Counter())[f"{record.profile} {record.context}"] += 1
    for (name, aspects), places in sorted(groups.items(), key=lambda item: -item[1].total()):
        _say(f"{places.total():5} {name} [{aspects}] {'; '.join(places)[:300]}")


def _report_replica(done: Sequence[Compared]) -> None:
    """How many records left the replica as the source, and which did not."""
    others = [each for each in done if each.on_replica]
    _say(f"replicas equal behind {len(done) - len(others)} of {len(done)}")
    for each in others:
        record = each.record
        _say(
            f"  {record.profile} {record.context} {record.name}: {', '.join(each.on_replica)}"
            f" [{', '.join(record.reasons)}]"
        )


def _report_reasons(done: Sequence[Compared]) -> None:
    """By reason and format, the names of the records that differ for it."""
    names: dict[tuple[str, str], Counter[str]] = {}
    for each in done:
        if each.exception and not each.is_impossible:
            key = (each.exception, str(each.record.settings["binlog_format"]))
            names.setdefault(key, Counter())[each.record.name] += 1
    for (reason, mode), found in names.items():
        listed = ", ".join(f"{name} {count}" for name, count in found.items())
        _say(f"{reason}; {mode} {found.total()}: {listed}")


def _write(lines: TextIO, each: Compared) -> None:
    if not each.differences or each.is_impossible:
        return
    record = each.record
    value = {
        "name": record.name,
        "number": record.number,
        "profile": record.profile,
        "context": record.context,
        "format": record.settings["binlog_format"],
        "exception": each.exception,
        "before": record.before,
        "sql": record.sql,
        "end": record.end,
        "differences": {
            difference.aspect: [difference.expected, difference.actual]
            for difference in each.differences
        },
    }
    lines.write(json.dumps(value, ensure_ascii=False) + "\n")
    lines.flush()


def _differing(done: Sequence[Compared]) -> list[Compared]:
    return [
        each for each in done if each.differences and not (each.is_impossible or each.exception)
    ]


def _say(text: str) -> None:
    print(text, flush=True)  # noqa: T201 - what it is run for


if __name__ == "__main__":
    main()
