"""`binlane verify DATA --source URL`: what binlogs say of their tables, held against servers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from binlane.cli.main import EXIT_WRONG
from binlane.cli.talk import say
from binlane.tables.proof.progress_waits import ComparisonLimits
from binlane.tables.proof.proof_run import ProofPlan, prove
from binlane.tables.proof.verdicts import ComparisonOutcome, ComparisonStep


def compare(
    paths: tuple[str, ...],
    servers: Mapping[str, Any],
    *,
    as_json: bool,
    has_steps: bool,
    quiet: bool,
) -> int:
    """Compare, print a line a table, and return the exit status.

    Args:
        paths: `DATA` or `DATA#NAME`, all of one store.
        servers: The options `source`, `replicas`, `rows_per_second` and `anew` by name.
        as_json: True if an object is printed for each table.
        has_steps: True if an object is printed for each step of a comparison, too.
        quiet: True if nothing is printed of tables that are equal.
    """
    data_dir, names = _store(paths)
    plan = ProofPlan(
        data_dir=data_dir,
        binlogs=names,
        source=servers["source"],
        replicas=servers["replicas"],
        rows_per_s=servers["rows_per_second"] or 0,
        is_anew=servers["anew"],
        limits=ComparisonLimits(observe=_print_step) if has_steps else ComparisonLimits(),
    )
    counts = dict.fromkeys(ComparisonOutcome, 0)
    for verdict in prove(plan):
        counts[verdict.finding] += 1
        if as_json:
            say(json.dumps(verdict.json(), ensure_ascii=False))
        elif not quiet or verdict.finding is not ComparisonOutcome.EQUAL:
            say(f"{verdict.binlog}: {verdict.table} ({verdict.server}): {verdict.text}")
    if not quiet:
        click.echo(
            f"tables: {counts[ComparisonOutcome.EQUAL]:,} equal, {counts[ComparisonOutcome.DIFFERENT]:,} different, "
            f"{counts[ComparisonOutcome.NOT_COMPARED]:,} not compared",
            err=True,
        )
    return EXIT_WRONG if counts[ComparisonOutcome.DIFFERENT] else 0


def _print_step(step: ComparisonStep) -> None:
    say(json.dumps({"step": asdict(step)}, ensure_ascii=False))


def _store(paths: tuple[str, ...]) -> tuple[Path, tuple[str, ...]]:
    """The directory of the store, and the names of the binlogs in it."""
    places = [path.partition("#") for path in paths]
    directories = {place[0] for place in places}
    if len(directories) > 1:
        raise click.UsageError("--source compares binlogs of one store: DATA, or DATA#NAME")
    names = [name for _, _, name in places]
    return Path(directories.pop()), tuple(names) if all(names) else ()
