from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

from binlane.errors import ConfigError, StoreError
from binlane.tables.landing.journal import Journal, read_file_whole


def test_target_and_checkpoint_belong_together(tmp_path: Path) -> None:
    first, second = str(tmp_path / "a"), str(tmp_path / "b")
    Journal.open(first, f"{first}-checkpoint", {})
    Journal.open(second, f"{second}-checkpoint", {})
    Journal.open(second, f"{second}-checkpoint", {})
    for into, checkpoint in (
        (first, f"{second}-checkpoint"),
        (first, str(tmp_path / "empty")),
        (first, None),
        (str(tmp_path / "empty"), f"{second}-checkpoint"),
    ):
        with pytest.raises(ConfigError, match="do not belong together"):
            Journal.open(into, checkpoint, {})


@pytest.mark.parametrize("file", ["landing.json", "journal-000000000000.json"])
def test_who_dies_while_it_binds_them_has_begun_nothing(file: str, tmp_path: Path) -> None:
    # Where a file is to be written there is a folder.
    (tmp_path / f"_binlane/{file}.new").mkdir(parents=True)
    with pytest.raises(StoreError):
        Journal.open(str(tmp_path), None, {"mode": "changes"})
    (tmp_path / f"_binlane/{file}.new").rmdir()
    first = Journal.open(str(tmp_path), None, {"mode": "current"})
    again = Journal.open(str(tmp_path), None, {"mode": "current"})
    assert again.state == first.state


def test_a_target_is_landed_on_the_same_terms(tmp_path: Path) -> None:
    Journal.open(str(tmp_path), None, {"mode": "changes", "tables": ""})
    Journal.open(str(tmp_path), None, {"mode": "changes", "tables": ""})
    for terms in ({"mode": "changes,current", "tables": ""}, {"mode": "changes", "tables": "shop"}):
        with pytest.raises(ConfigError, match=r"was landed with (mode changes|tables not given)"):
            Journal.open(str(tmp_path), None, terms)


def test_what_an_earlier_version_landed_is_refused(tmp_path: Path) -> None:
    (tmp_path / "_binlane").mkdir()
    (tmp_path / "_binlane/journal.json").write_text("{}")
    with pytest.raises(ConfigError, match="by an earlier version"):
        Journal.open(str(tmp_path), None, {})


def test_what_is_written_under_an_older_lease_is_not_read(tmp_path: Path) -> None:
    old = Journal.open(str(tmp_path), None, {}, epoch=1)
    new = Journal.open(str(tmp_path), None, {}, epoch=2)
    new.state.done = 7
    new.save()
    old.state.done = 99
    old.save()
    again = Journal.open(str(tmp_path), None, {}, epoch=3)
    assert again.state.done == 7
    again.save()
    assert len(list((tmp_path / "_binlane").glob("journal-*"))) == 1


class ObjectStore:
    """Gives what is read of a file that is written meanwhile, one after the other."""

    def __init__(self, *found: bytes) -> None:
        self._found = list(found)

    def open_input_file(self, _path: str) -> io.BytesIO:
        return io.BytesIO(self._found.pop(0))


def test_a_file_that_became_longer_while_it_was_read_is_read_again() -> None:
    """A driver would take another one that has just shown that it lives for gone."""
    store: Any = ObjectStore(
        b'{"state": "hold', b'{"state": "holds", "renewed": 1', b'{"state": 1}'
    )
    assert read_file_whole(store, "lease") == {"state": 1}
    store = ObjectStore(b'{"state": "hold', b'{"state": "hold')
    with pytest.raises(ValueError, match="Unterminated"):
        read_file_whole(store, "lease")
