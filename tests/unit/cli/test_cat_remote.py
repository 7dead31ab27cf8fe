"""What a server that is not to be trusted makes `cat --raw` write."""

from __future__ import annotations

import pytest

from binlane.cli.cat_remote import checked_name
from binlane.errors import CodecError


@pytest.mark.parametrize("name", ["", ".", "..", "/etc/passwd", "../b.000001", "a/b", "b\0.000001"])
def test_a_file_of_a_server_is_never_a_path(name: str) -> None:
    with pytest.raises(CodecError, match="is not a file name"):
        checked_name(name)


def test_names_of_files_stay() -> None:
    assert checked_name("..binlog.000001") == "..binlog.000001"
