"""The first demo on a bare machine, and the second: `python -m benchmarks.bare`, as root.

Prints JSON lines: seconds that passed, and of the processor. Kernels that are compiled beside the
demo are not counted. Needs debootstrap and a mirror of Debian.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
import time
from pathlib import Path

from tests.bare_root import make_root, run_in, settings_of_pip

# The shell is the root's first process: it gets what ended orphaned, too, such as Spark's JVM.
_COMMAND = "cd ~/binlane && ./run demo --quiet {}; sleep 3; times"
_TIMES = re.compile(r"(\d+)m([\d.]+)s (\d+)m([\d.]+)s\s*\Z")


def main() -> None:
    """Make a root, and run the demo in it."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder, "root")
        make_root(root)
        settings = settings_of_pip(root)
        for what in ("first demo", "second demo", "first demo --mysql"):
            load, begin = os.getloadavg()[0], time.monotonic()
            options = "--mysql" if "mysql" in what else ""
            shown = run_in(root, _COMMAND.format(options), settings, 3600)
            wall_s = time.monotonic() - begin - 3
            found = _TIMES.search(shown)
            assert found is not None, shown
            assert "checks held" in shown, shown
            minutes, seconds, system_minutes, system_seconds = map(float, found.groups())
            line = {
                "what": what,
                "wall_s": round(wall_s, 1),
                "cpu_s": round(60 * (minutes + system_minutes) + seconds + system_seconds, 1),
                "load": round(load, 1),
                "steps": re.findall(r"^  (.*) … (\d+) s$", shown, re.MULTILINE),
            }
            print(json.dumps(line, ensure_ascii=False), flush=True)


if __name__ == "__main__":
    main()
