"""Logs in object storage: an S3 server of its own, spoken to over TCP."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path

import pyarrow.fs as pafs
import pytest
from moto.server import ThreadedMotoServer

from binlane.errors import ConfigError, StoreError
from binlane.tables.ranges.filesystems import opened
from binlane.tables.ranges.log_range import Limits
from binlane.tables.ranges.planner import Planner
from binlane.tables.ranges.stored_files import read_groups_of
from tests.unit.tables.ranges.test_plan import all_ranges, groups_of, write, write_large


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    server = ThreadedMotoServer(port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"scheme=http&endpoint_override={host}:{port}&region=us-east-1"
    server.stop()


@pytest.fixture
def bucket(endpoint: str, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> str:
    """A URI with `%s` for the path in a bucket of this test's own."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    name = f"b{abs(hash(request.node.name))}"
    options = f"{endpoint}&allow_bucket_creation=true"
    system, path = pafs.FileSystem.from_uri(f"s3://{name}/x?{options}")
    system.create_dir(path.rpartition("/")[0])
    return f"s3://{name}/%s?{endpoint}"


def put(bucket: str, path: str, data: bytes) -> None:
    system, key = opened(bucket % path)
    with system.open_output_stream(key, compression=None) as stream:
        stream.write(data)


def upload(bucket: str, folder: str, log: Path) -> None:
    for path in log.iterdir():
        put(bucket, f"{folder}/{path.name}", path.read_bytes())


def test_a_directory_a_pattern_and_a_file(bucket: str, tmp_path: Path) -> None:
    write(tmp_path, 1, 4)
    write(tmp_path, 2, 3)
    write(tmp_path, 3, 2)
    expected = groups_of(all_ranges(Planner(str(tmp_path))))
    put(bucket, "logs/shop.index", b"./shop.000001\n")
    upload(bucket, "logs", tmp_path)
    planner = Planner(bucket % "logs")
    begin, end = planner.begin(), planner.end()
    assert groups_of(planner.ranges(begin, end)) == expected
    assert end.json() == Planner(str(tmp_path)).end().json()
    assert planner.next(begin, Limits(groups=5)).file == "shop.000002"
    assert len(groups_of(all_ranges(Planner(bucket % "logs/shop.00000[13]")))) == 6
    assert len(groups_of(all_ranges(Planner(bucket % "logs/shop.000002")))) == 3


def test_a_compressed_file(bucket: str, tmp_path: Path) -> None:
    write(tmp_path, 1, 4)
    expected = groups_of(all_ranges(Planner(str(tmp_path))))
    put(bucket, "logs/shop.000001.gz", gzip.compress((tmp_path / "shop.000001").read_bytes()))
    planner = Planner(bucket % "logs")
    assert groups_of(planner.ranges(planner.begin(), planner.end())) == expected


def test_a_task_reads_its_range_and_not_the_file(bucket: str, tmp_path: Path) -> None:
    size = write_large(tmp_path, 1, 24 << 20)
    upload(bucket, "logs", tmp_path)
    planner = Planner(bucket % "logs")
    pieces = planner.ranges(planner.begin(), planner.end(), cores=4)
    assert len(pieces) == 4
    assert sum((piece.stop or 0) - piece.start for piece in pieces) == size - 4
    whole = groups_of(all_ranges(Planner(str(tmp_path))))
    assert groups_of(pieces) == whole


def test_accounts_and_options_are_in_no_message(bucket: str) -> None:
    with pytest.raises(StoreError) as caught:
        Planner((bucket % "nothing").replace("s3://", "s3://key:secret@")).end()
    assert "secret" not in f"{caught.value} {caught.value.hint}"
    assert "endpoint" not in str(caught.value)
    with pytest.raises(ConfigError, match="ftp://nowhere cannot be opened"):
        Planner("ftp://user:secret@nowhere/x").end()
    with pytest.raises(ConfigError) as refused:
        Planner("ftp://user:secret@nowhere/x").end()
    assert "secret" not in str(refused.value)


def test_damage_names_the_object(bucket: str, tmp_path: Path) -> None:
    write(tmp_path, 1, 4)
    data = bytearray((tmp_path / "shop.000001").read_bytes())
    data[-30] ^= 1
    put(bucket, "logs/shop.000001", bytes(data))
    (piece,) = all_ranges(Planner(bucket % "logs"))
    with pytest.raises(Exception, match=r"s3://b\d+/logs/shop\.000001:\d+") as caught:
        list(read_groups_of(piece))
    assert "endpoint" not in str(caught.value)
