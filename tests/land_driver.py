"""`binlane land` in tests that kill it: every work goes to a process of its own.

Else works of a few bytes, which is what a source writes in a second, are done by the driver itself.
"""

from __future__ import annotations

import sys

from binlane.cli.main import main
from binlane.landing import engine

if __name__ == "__main__":
    engine.SMALL_BYTES = 0  # type: ignore[misc]  # for this process alone
    sys.exit(main())
