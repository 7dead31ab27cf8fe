"""Removal of what landings leave behind: staged runs of a batch that is done or of a dead driver."""

from __future__ import annotations

from contextlib import suppress

from binlane.tables.landing.places import FOLDER, resolve, staging_uri


def forget_batch(into: str, run_id: str) -> None:
    """Remove the staged runs of a batch, which nobody needs once its tables are committed."""
    filesystem, path = resolve(staging_uri(into, run_id))
    with suppress(FileNotFoundError):
        filesystem.delete_dir(path)


def sweep(into: str, dead_run_id: str) -> None:
    """Remove what a driver left that died, all of whose works are to be done again.

    Args:
        into: URI or path of the target, which the caller holds.
        dead_run_id: Names the driver; empty if the last one ended well.
    """
    if dead_run_id:
        filesystem, path = resolve(f"{into}/{FOLDER}/staging")
        with suppress(FileNotFoundError):
            filesystem.delete_dir_contents(path)
