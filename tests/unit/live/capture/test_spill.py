from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from binlane.errors import StoreError, StoreFullError
from binlane.live.capture.spill import SpillFolder


@contextmanager
def files_of_at_most(size_bytes: int) -> Iterator[None]:
    """Let every larger file fail, as a full disk does."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_what_is_put_aside_comes_back_as_often_as_need_be(tmp_path: Path) -> None:
    folder = SpillFolder(tmp_path / "spill")
    spilled = folder.begin()
    for number in range(5):
        spilled.write(memoryview(bytes([number]) * 700_000))
    whole = b"".join(bytes([number]) * 700_000 for number in range(5))
    assert [b"".join(spilled.chunks()) for _ in range(2)] == [whole, whole]
    other = folder.begin()
    other.write(memoryview(b"another"))
    spilled.close()
    assert b"".join(other.chunks()) == b"another"
    other.close()
    assert list((tmp_path / "spill").iterdir()) == []


def test_what_an_earlier_process_left_is_removed(tmp_path: Path) -> None:
    (tmp_path / "7.spill").write_bytes(b"left")
    other = tmp_path / "not ours"
    other.touch()
    SpillFolder(tmp_path).clean()
    assert list(tmp_path.iterdir()) == [other]
    SpillFolder(tmp_path / "none").clean()
    assert not (tmp_path / "none").exists()


def test_a_full_disk_is_told_as_such(tmp_path: Path) -> None:
    spilled = SpillFolder(tmp_path).begin()
    with files_of_at_most(100_000), pytest.raises(StoreFullError, match="no room") as caught:
        spilled.write(memoryview(bytes(150_000)))
    assert str(tmp_path) in caught.value.path
    assert "make room" in caught.value.hint
    spilled.close()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_used(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="cannot be put aside") as caught:
        SpillFolder(tmp_path / "file").begin()
    assert not isinstance(caught.value, StoreFullError)
