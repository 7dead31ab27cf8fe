"""Puts compiled kernels into a wheel; `just wheel` asks for it.

They are for any processor of the machine's architecture that is not too old, and for the Python
that builds, which needs what `python -m binlane.log.kernels.build` needs.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class KernelsHook(BuildHookInterface[Any]):
    """Compiles the kernels before the wheel is packed."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile into a folder of its own, and name what lies there.

        Args:
            version: `standard`, or `editable`, which takes the sources as they are.
            build_data: What the wheel will hold and be called.

        Raises:
            BuildError: If the kernels cannot be compiled.
        """
        if version == "editable":
            return
        # Kernels import nothing of binlane but themselves.
        sys.path.insert(0, str(Path(self.root) / "src"))
        from binlane.log.kernels.build import build  # noqa: PLC0415 - of these very sources
        from binlane.log.kernels.load import Target  # noqa: PLC0415 - as above

        self._place = self._folder()
        for path in build(Path(self._place.name), Target.PORTABLE):
            build_data["force_include"][str(path)] = f"binlane/log/kernels/{path.name}"
        build_data["pure_python"] = False
        build_data["infer_tag"] = True

    def _folder(self) -> tempfile.TemporaryDirectory[str]:
        """Beside the sources: whoever tidies the system's folder would take it away meanwhile."""
        beside = self.root if os.access(self.root, os.W_OK) else None
        return tempfile.TemporaryDirectory(prefix=".kernels-", dir=beside)

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the folder, now that the wheel is packed."""
        del build_data, artifact_path
        if version != "editable":
            self._place.cleanup()
