from __future__ import annotations

import pytest

from binlane.sql.cursor import Stopped
from binlane.sql.queries import query_tables
from binlane.sql.tokens import tokenise


def test_what_is_no_query_is_not_understood_and_stands_in_no_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with pytest.raises(Stopped):
        query_tables(list(tokenise("CREATE TABLE IF * secret"))[:-1])
    assert caplog.text == ""
