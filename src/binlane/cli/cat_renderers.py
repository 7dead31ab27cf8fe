"""The renderer that prints a command line of `cat`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from binlane.binlogs.cat.renderer import Renderer
from binlane.cli.cat_request import CatRequest

if TYPE_CHECKING:
    from binlane.binlogs.filters.schema_objects import SchemaObjects
    from binlane.statements.sql.logged_objects import LoggedObjects

_SERVER: Final = re.compile(r"(mariadb|mysql)://")


def renderer_for(request: CatRequest, catalog: LoggedObjects | None) -> Renderer:
    """Return the renderer of the requested form; only then its module is imported.

    Args:
        request: The request of the command line.
        catalog: Names and types of columns; None where the log alone tells them.
    """
    given = request.given
    if given["flashback"]:
        from binlane.binlogs.cat.sql.flashback import Flashback  # noqa: PLC0415  # only what is asked for

        return Flashback(catalog=catalog)
    if given["format_"] == "json":
        from binlane.binlogs.cat.event_json_lines import JsonLines  # noqa: PLC0415  # as above

        return JsonLines(with_rows=given["verbose"] > 0, catalog=catalog)
    if given["format_"] == "sql":
        from binlane.binlogs.cat.sql.sql_lines import SqlLines  # noqa: PLC0415  # as above

        return SqlLines(catalog=catalog, load_directory=given["load_directory"])
    from binlane.binlogs.cat.text.text_lines import TextLines  # noqa: PLC0415  # as above

    return TextLines(request.text_options())


def catalog_for(request: CatRequest) -> LoggedObjects | None:
    """The catalog that `--schema` gives, kept up to date by the log's own DDL.

    Without it there is none, since most output needs none; SQL cannot be written without names, so
    there the log's own definitions have to do.

    Raises:
        StoreError: If the file cannot be read.
        PeerError: If the server cannot be asked.
    """
    source = request.given["schema"]
    needs_names = request.given["flashback"] or request.given["format_"] == "sql"
    if source is None and not needs_names:
        return None
    from binlane.statements.sql.logged_objects import LoggedObjects  # noqa: PLC0415  # only where names are wanted

    catalog = LoggedObjects()
    if source is not None:
        _load(catalog, source, request)
    return catalog


def known_objects(request: CatRequest) -> SchemaObjects | None:
    """The views, routines and triggers that `--schema` gives, for the filter; None without it."""
    source = request.given["schema"]
    if source is None:
        return None
    from binlane.binlogs.filters.schema_objects import SchemaObjects  # noqa: PLC0415  # as above

    return SchemaObjects(lambda catalog: _load(catalog, source, request))


def _load(catalog: LoggedObjects, source: str, request: CatRequest) -> None:
    if _SERVER.match(source):
        from binlane.cli.cat_remote import server_schema  # noqa: PLC0415  # only with a server

        catalog.load_statements(server_schema(source, request.given))
        return
    from binlane.cli.filter_options import load_schema  # noqa: PLC0415  # as above

    load_schema(source, catalog)
