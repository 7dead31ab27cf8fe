"""Targets of a landing that are none."""

from __future__ import annotations

import pytest

from binlane.errors import ConfigError
from binlane.tables.landing.target_files import resolve


@pytest.mark.parametrize("uri", ["http://[", "mysql://u:secret@h/d", "s3://", "file://", "a\udcff"])
def test_what_is_no_place_is_told(uri: str) -> None:
    with pytest.raises(ConfigError) as caught:
        resolve(uri)
    assert "secret" not in str(caught.value)
