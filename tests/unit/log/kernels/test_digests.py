"""Hashes of row images: the same in every form of the kernel, and none outside of the bytes."""

from __future__ import annotations

import random

import numpy as np
import pytest

from binlane.log.grouping.window import padded
from binlane.log.kernels.load import Build, builds, running

WIDTHS = np.array([4, -1, 8, -2, 0], np.int32)


def row(chance: random.Random) -> bytes:
    nulls = chance.randrange(32)
    parts = [bytes([nulls | 0xE0 * chance.randrange(2)])]
    for column, width in enumerate(WIDTHS.tolist()):
        if nulls >> column & 1:
            continue
        if width >= 0:
            parts.append(chance.randbytes(width))
        else:
            text = chance.randbytes(chance.randrange(40))
            parts += [len(text).to_bytes(-width, "little"), text]
    return b"".join(parts)


def hashed(build: Build, images: bytes, room: int) -> tuple[int, list[list[int]], list[int]]:
    data = padded(len(images))
    data[: len(images)] = np.frombuffer(images, np.uint8)
    hashes, starts = np.zeros((room, 2), np.uint32), np.zeros(room, np.int32)
    with running(build) as kernels:
        count = kernels.hash_images(data, len(images), WIDTHS, hashes, starts)
    return count, hashes.tolist(), starts.tolist()


@pytest.mark.parametrize("build", builds())
def test_all_forms_give_the_same(build: Build) -> None:
    chance = random.Random(3)
    images = [row(chance) for _ in range(60)]
    whole = b"".join(images)
    count, hashes, starts = hashed(build, whole, 60)
    assert count == 60
    assert starts == np.cumsum([0, *map(len, images)])[:-1].tolist()
    assert hashes == hashed(builds()[0], whole, 60)[1]
    alone = [hashed(build, image, 1)[1][0] for image in images]
    assert hashes == alone
    assert len({tuple(pair) for pair in hashes}) == len(
        {bytes([one[0] & 0x1F]) + one[1:] for one in images}
    )
    assert hashed(build, whole, 10)[0] == -2
    longest = max(images, key=len)
    cut = [hashed(build, longest[:end], 5)[0] for end in range(1, len(longest))]
    assert set(cut) == {-1}
