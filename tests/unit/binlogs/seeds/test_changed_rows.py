"""Changed rows on disk: the last image of a key, and copies of rows without one."""

from __future__ import annotations

import random
from pathlib import Path

from binlane.binlogs.seeds.changed_rows import ChangedRowsFile, KeyFilter


def test_the_last_image_of_a_key_counts(tmp_path: Path) -> None:
    changed = ChangedRowsFile(tmp_path / "changes.db")
    chance, expected = random.Random(1), {}
    for _ in range(2000):
        key = bytes((chance.randrange(200),))
        image = chance.choice((None, chance.randbytes(3)))
        changed.put(0, key, image)
        changed.put(1, key, b"other table")
        expected[key] = image
    assert changed.size(0) == len(expected)
    rows = [(key, image, 0) for key, image in sorted(expected.items()) if image is not None]
    assert list(changed.rows(0)) == rows
    assert changed.has(0, next(iter(expected)))
    assert not changed.has(0, b"never")
    changed.forget(0)
    assert list(changed.rows(0)) == []
    assert changed.size(1) == len(expected)
    changed.close()
    assert not list(tmp_path.iterdir())


def test_copies_of_rows_are_counted(tmp_path: Path) -> None:
    changed = ChangedRowsFile(tmp_path / "changes.db")
    for image, copies in ((b"a", 1), (b"a", 1), (b"b", -1), (b"c", 1), (b"c", -1), (b"b", -1)):
        changed.count(0, image, copies)
    assert list(changed.rows(0)) == [(b"a", b"a", 2)]
    assert [changed.copies(0, image) for image in (b"a", b"b", b"c", b"d")] == [2, -2, 0, 0]
    assert changed.gone(0) == 2
    changed.close()
    again = ChangedRowsFile(tmp_path / "changes.db")
    assert again.size(0) == 0
    again.close()


def test_a_filter_misses_no_key_and_few_others() -> None:
    made = KeyFilter(1000)
    keys = [b"key %d" % number for number in range(1000)]
    for key in keys:
        made.add(key)
    assert all(map(made.may_have, keys))
    wrong = sum(made.may_have(b"other %d" % number) for number in range(10_000))
    assert wrong < 1000
    assert KeyFilter(0).is_empty
