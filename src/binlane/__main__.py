"""`python -m binlane`."""

import sys

from binlane.cli import main

if __name__ == "__main__":
    sys.exit(main())
