"""LOAD DATA as servers before 5.0.3 wrote it; no real file of theirs is at hand."""

from __future__ import annotations

import pytest

from binlane.errors import CodecError, TruncatedError
from binlane.log.codec.body import Body
from binlane.log.codec.buffer import Reader
from binlane.log.codec.old_load import CreateFileEvent, LoadEvent, NewLoadEvent
from tests.build import FORMAT

HEAD = "05000000" + "01000000" + "02000000" + "01" + "04" + "02000000"
NAMES = "0102" + b"a\0bc\0t\0shop\0".hex()
OLD = b"\t\"\n'\\".hex() + "06" + "10"
LONG = "0209 0a".replace(" ", "") + "0122" + "010a" + "00" + "015c" + "06"


def decoded(kind: type[Body], text: str) -> Body:
    reader = Reader(bytes.fromhex(text))
    body = kind.decode(reader, FORMAT)
    reader.finish()
    assert body.encode(FORMAT).hex() == text
    return body


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (LoadEvent, HEAD + OLD + NAMES + b"f.txt".hex()),
        (NewLoadEvent, HEAD + LONG + NAMES + b"f.txt".hex()),
        (CreateFileEvent, HEAD + "07000000" + LONG + NAMES + b"f.txt\0block\0".hex()),
    ],
)
def test_the_statements_parts_are_read(kind: type[LoadEvent], text: str) -> None:
    body = decoded(kind, text)
    assert isinstance(body, kind)
    assert (body.thread_id, body.execution_time, body.lines_skipped) == (5, 1, 2)
    assert (body.field_names, body.table, body.database) == ((b"a", b"bc"), b"t", b"shop")
    assert (body.file, body.option_flags) == (b"f.txt", 6)
    if kind is LoadEvent:
        assert (body.endings, body.empty_flags) == ((b"\t", b'"', b"\n", b"'", b"\\"), 16)
    else:
        assert body.endings == (b"\t\n", b'"', b"\n", b"", b"\\")
    if isinstance(body, CreateFileEvent):
        assert (body.file_id, body.data) == (7, b"block\0")


def test_lengths_that_lie_are_damage() -> None:
    with pytest.raises(CodecError, match="no NUL stands after a name"):
        decoded(LoadEvent, HEAD + OLD + NAMES.replace("0102", "0202"))
    with pytest.raises(CodecError, match="no NUL stands after the file's name"):
        decoded(CreateFileEvent, HEAD + "07000000" + LONG + NAMES + b"f.txt".hex())
    with pytest.raises(TruncatedError):
        decoded(LoadEvent, HEAD[:-8] + "ffffffff" + OLD + NAMES)
