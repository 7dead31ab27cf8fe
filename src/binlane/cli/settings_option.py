"""The file and the environment that give `serve` and `config check` their settings."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from binlane.live.service.config import ConfigSource

_USUAL: Final = Path("binlane.toml")


def config_source(path: Path | None, *, is_embedded: bool) -> ConfigSource:
    """The file that was named, or the usual one if it is there; the environment above it."""
    return ConfigSource(
        path or _USUAL, may_lack=path is None, environ=os.environ, is_embedded=is_embedded
    )
