"""Shapes of texts by the kernel are those of the reference."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from binlane.binlogs.routing.texts import shape_of
from binlane.log.codec.query import AnnotateRowsEvent, RowsQueryEvent
from binlane.log.grouping.walk import walk
from binlane.log.kernels.load import kernels
from tests.fixture_sets import fixture_names, fixture_set


def kernel_shape(text: bytes) -> bytes:
    data = np.frombuffer(text + bytes(64), np.uint8).copy()
    out = np.zeros(len(text) + 128, np.uint8)
    return out[: kernels().shape(data, 0, len(text), out)].tobytes()


@pytest.mark.parametrize("flavor", ["md1011", "my97"])
def test_shapes_of_recorded_texts(flavor: str) -> None:
    for name in fixture_names(flavor):
        if name.endswith(("encrypted", "netstream", "bigrow")):
            continue
        for file, data in fixture_set(name).binlogs:
            for event in walk([data], file=file):
                if isinstance(event.body, AnnotateRowsEvent | RowsQueryEvent):
                    assert kernel_shape(event.body.query) == shape_of(event.body.query)


@given(st.text("a1.'`\\\"- (2_é", max_size=24))
@example("'a''")
@example("'\\'")
@example("'\\\\'1")
@example("1.2.3 4.5 .6 7.")
def test_shapes_of_any_text(text: str) -> None:
    data = text.encode()
    assert kernel_shape(data) == shape_of(data)
