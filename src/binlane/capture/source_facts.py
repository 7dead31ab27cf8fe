"""What a source says of itself, and whether its log can be the ground truth."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Self

from binlane.codec.format import flavor_of
from binlane.codec.types import Flavor
from binlane.errors import ConfigError
from binlane.positions import GtidPosition

_VARIABLES: Final = (
    "version",
    "server_id",
    "gtid_domain_id",
    "log_bin",
    "binlog_format",
    "binlog_row_image",
    "binlog_row_metadata",
    "gtid_binlog_pos",
)
# SHOW gives those that the server has; a SELECT of @@variables fails at the first that it lacks.
FACTS_STATEMENT: Final = (
    "SHOW GLOBAL VARIABLES WHERE Variable_name IN ("
    + ", ".join(f"'{name}'" for name in _VARIABLES)
    + ")"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFacts:
    """Settings and state of a source when the capture connected.

    Attributes:
        version: Such as `10.11.19-MariaDB-log`.
        flavor: Told by the version.
        server_id: Its own.
        gtid_domain_id: The domain that it writes by default.
        has_binlog: Whether it writes a binlog.
        binlog_format: Default of its sessions: ROW, MIXED or STATEMENT.
        binlog_row_image: Default of its sessions: FULL, NOBLOB, MINIMAL or FULL_NODUP.
        binlog_row_metadata: FULL, MINIMAL or NO_LOG.
        gtid_binlog_position: The last GTID of each domain in its log.
    """

    version: str
    flavor: Flavor
    server_id: int
    gtid_domain_id: int
    has_binlog: bool
    binlog_format: str
    binlog_row_image: str
    binlog_row_metadata: str
    gtid_binlog_position: GtidPosition

    @classmethod
    def of(cls, variables: Mapping[str, str]) -> Self:
        """Read the rows of `FACTS_STATEMENT`; what an older server lacks has its fixed value."""
        version = variables.get("version", "")
        return cls(
            version=version,
            flavor=flavor_of(version),
            server_id=int(variables.get("server_id", "0")),
            gtid_domain_id=int(variables.get("gtid_domain_id", "0")),
            has_binlog=variables.get("log_bin", "OFF") == "ON",
            binlog_format=variables.get("binlog_format", "ROW"),
            binlog_row_image=variables.get("binlog_row_image", "FULL"),
            binlog_row_metadata=variables.get("binlog_row_metadata", "NO_LOG"),
            gtid_binlog_position=GtidPosition.parse(variables.get("gtid_binlog_pos", "")),
        )

    def check(self, *, server_id: int) -> None:
        """Refuse a source whose log does not say everything.

        Args:
            server_id: The id that binlane uses there.

        Raises:
            ConfigError: Its key is the source's variable, or binlane's setting, to change.
        """
        if self.flavor is not Flavor.MARIADB:
            raise ConfigError(
                f"the source is MySQL {self.version}; only MariaDB can be captured",
                key="source.url",
                hint="files of MySQL can be read all the same: binlane cat FILE",
            )
        if not self.has_binlog:
            raise ConfigError(
                "the source writes no binlog",
                key="log_bin",
                hint="start it with --log-bin --binlog-format=ROW --binlog-row-metadata=FULL",
            )
        for key, value, wanted in (
            ("binlog_format", self.binlog_format, "ROW"),
            ("binlog_row_image", self.binlog_row_image, "FULL"),
        ):
            if value != wanted:
                raise ConfigError(
                    f"the source has {key} = {value}, so its log does not hold whole rows",
                    key=key,
                    hint=f"on the source: SET GLOBAL {key} = {wanted}, set it in its option file,"
                    " and let clients connect anew",
                )
        if self.server_id == server_id:
            raise ConfigError(f"server id {server_id} is the source's own", key="source.server_id")

    def warnings(self) -> Iterator[str]:
        """What is not wrong, but loses something."""
        if self.binlog_row_metadata != "FULL":
            yield (
                f"the source has binlog_row_metadata = {self.binlog_row_metadata}: columns will be "
                "@1, @2, ... without names; on the source: SET GLOBAL binlog_row_metadata = FULL"
            )
