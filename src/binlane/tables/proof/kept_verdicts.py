"""The verdicts on the tables of a store's binlogs, kept beside the digests."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

from binlane.binlogs.store.disk import LocalDisk, unusable, write_whole
from binlane.errors import StoreError
from binlane.tables.proof.verdicts import ComparisonOutcome, TableVerdict

PROOF_DIRECTORY: Final = "proof"
_FILE: Final = "verdicts.json"

VerdictKey = tuple[str, str]
"""Table and server of a verdict."""


def proof_directory(data_dir: Path, log_id: int) -> Path:
    """The directory of a binlog's digests, rows' hashes and verdicts."""
    return data_dir / PROOF_DIRECTORY / str(log_id)


class KeptVerdicts:
    """The last verdict on each table of one binlog.

    Args:
        directory: Directory as `proof_directory` gives it.

    Raises:
        StoreError: If the file cannot be read.
    """

    def __init__(self, directory: Path) -> None:
        self._path = directory / _FILE
        self._verdicts: dict[VerdictKey, TableVerdict] = {}
        try:
            text = self._path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return
        except OSError as error:
            raise unusable(error, self._path) from error
        try:
            found = [TableVerdict.parse(values) for values in json.loads(text)]
        except (ValueError, KeyError, TypeError) as error:
            raise StoreError(
                f"the verdicts cannot be read: {error}",
                path=str(self._path),
                hint="remove the file: the next comparison makes it again",
            ) from error
        self._verdicts = {(each.table, each.server): each for each in found}

    def __iter__(self) -> Iterator[TableVerdict]:
        return iter(sorted(self._verdicts.values(), key=lambda each: (each.table, each.server)))

    def put(self, verdict: TableVerdict) -> TableVerdict:
        """Keep a verdict; a difference stays until the table is found equal.

        Returns:
            The verdict that now counts.

        Raises:
            StoreError: If the disk fails.
        """
        key = verdict.table, verdict.server
        before = self._verdicts.get(key)
        equal_gtid = before.equal_gtid if before is not None else ""
        if verdict.finding is ComparisonOutcome.EQUAL:
            equal_gtid = verdict.gtid
        is_kept = (
            before is not None
            and before.finding is ComparisonOutcome.DIFFERENT
            and verdict.finding is ComparisonOutcome.NOT_COMPARED
        )
        if is_kept and before is not None:
            verdict = replace(before, reason=verdict.reason)
        else:
            verdict = replace(verdict, equal_gtid=equal_gtid)
        self._verdicts[key] = verdict
        self._save()
        return verdict

    def keep_only(self, keys: Collection[VerdictKey]) -> None:
        """Forget the verdicts on all other tables.

        Raises:
            StoreError: If the disk fails.
        """
        left = {key: each for key, each in self._verdicts.items() if key in keys}
        if left.keys() != self._verdicts.keys():
            self._verdicts = left
            self._save()

    def _save(self) -> None:
        data = json.dumps([each.json() for each in self], indent=1).encode()
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(LocalDisk(), self._path, data)
        except OSError as error:
            raise unusable(error, self._path) from error
