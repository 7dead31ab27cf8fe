"""Several named, scoped binary logs for a stock MariaDB or MySQL server."""

__version__ = "0.1.0"
