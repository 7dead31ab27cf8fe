"""Run all recorded decisions through our sessions: `python -m tests.yardsticks [--write]`.

Prints the agreement per kind of statement and per settings; `--write` puts the table into
`docs/fidelity.md`, `--mismatches FILE` writes what differs, one JSON object a line.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from pathlib import Path
from typing import Final

from tests.yardsticks.agreement import Agreement, agreement
from tests.yardsticks.records import FLAVORS

_PAGE: Final = Path(__file__).parents[2] / "docs" / "fidelity.md"
_BEGIN: Final = "<!-- yardsticks: written by `just yardsticks --write` -->\n"
_END: Final = "<!-- end of yardsticks -->"


def main() -> None:
    """Compare, print and write."""
    parser = argparse.ArgumentParser(prog="yardsticks", description=__doc__)
    parser.add_argument("--write", action="store_true", help="put the table into docs/fidelity.md")
    parser.add_argument("--mismatches", type=Path, metavar="FILE", help="write what differs")
    parser.add_argument("--only", default="", metavar="REGEX", help="names of records to run")
    arguments = parser.parse_args()
    found = [agreement(flavor, only=arguments.only) for flavor in FLAVORS]
    for one in found:
        _print(one)
    if arguments.mismatches is not None:
        _write_mismatches(arguments.mismatches, found)
    if arguments.write:
        before, _, rest = _PAGE.read_text(encoding="utf-8").partition(_BEGIN)
        _, _, after = rest.partition(_END)
        _PAGE.write_text(before + _BEGIN + _table(found) + _END + after, encoding="utf-8")


def _print(one: Agreement) -> None:
    print(f"{one.flavor}: {one.agreed:,} of {one.total:,} agree")
    groups = Counter(
        (mismatch.record.name, difference.aspect, mismatch.record.profile)
        for mismatch in one.mismatches
        for difference in mismatch.differences
    )
    by_name: dict[tuple[str, str], Counter[str]] = {}
    for (name, aspect, profile), number in groups.items():
        by_name.setdefault((name, aspect), Counter())[profile] += number
    for (name, aspect), profiles in sorted(by_name.items(), key=lambda item: -item[1].total()):
        where = "; ".join(f"{profile} {number}" for profile, number in profiles.most_common())
        print(f"  {profiles.total():5} {name} [{aspect}] {where}")


def _write_mismatches(path: Path, found: list[Agreement]) -> None:
    with path.open("w", encoding="utf-8") as lines:
        for one in found:
            for mismatch in one.mismatches:
                record = mismatch.record
                value = {
                    "flavor": record.flavor,
                    "name": record.name,
                    "profile": record.profile,
                    "context": record.context,
                    "before": record.before,
                    "sql": record.sql,
                    "end": record.end,
                    "differences": {
                        difference.aspect: [difference.expected, difference.actual]
                        for difference in mismatch.differences
                    },
                }
                lines.write(json.dumps(value, ensure_ascii=False) + "\n")


def _table(found: list[Agreement]) -> str:
    """Agreement per group of records and server, as a table in Markdown."""
    lines = ["", "| statements | MariaDB 10.11.19 | MySQL 9.7.4 |", "|---|---|---|"]
    counts = [one.by_group for one in found]
    for group in sorted({group for count in counts for group in count}):
        cells = (_cell(count.get(group)) for count in counts)
        lines.append(f"| {group} | {' | '.join(cells)} |")
    totals = (_cell((one.agreed, one.total)) for one in found)
    lines.append(f"| **all** | {' | '.join(totals)} |")
    return "\n".join(lines) + "\n\n"


def _cell(count: tuple[int, int] | None) -> str:
    return "—" if count is None else re.sub(r"^(.*)$", r"\1", f"{count[0]:,} of {count[1]:,}")


if __name__ == "__main__":
    main()
