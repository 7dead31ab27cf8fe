"""Effects of MODIFY and CHANGE on the values of a column, value by value, as the servers have them.

Neither server logs the rows anew. A conversion that is provably the same on both servers is
followed; where a server depends on facts that the log does not tell (a local time becomes a moment,
a number text in the server's own style), `UnknownValuesError` says that nobody knows. In strict mode a
value that does not fit ends the ALTER TABLE, so such values are never met; without strict mode the
servers cut them to what fits, and so does this module.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from decimal import ROUND_HALF_UP, Decimal
from functools import partial
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from binlane.log.codec.types import Flavor
from binlane.statements.sql.table_definitions import TableColumn
from binlane.tables.columnar.arrow_types import has_zone
from binlane.tables.landing.column_families import (
    BYTES_MAX,
    CHARACTERS,
    CHARS,
    FIXED_CHARS,
    TEXTS_MAX,
    WIDE,
    binary_bytes,
    decimal_digits,
    family_of,
    first_number,
    integer_range,
    is_alike,
    type_text,
)
from binlane.tables.landing.column_values import (
    Convert,
    UnknownValuesError,
    Values,
    bits,
    datetime_text,
    exactly,
    instead_of_null,
    is_encodable,
    is_number,
    mapped,
    of_decimal,
    same,
    without_zero,
    year,
)

_FAMILIES_BY_TYPE: Final[tuple[tuple[Callable[[pa.DataType], bool], str], ...]] = (
    (pa.types.is_integer, "INTEGER"),
    (pa.types.is_decimal, "DECIMAL"),
    (pa.types.is_float32, "FLOAT"),
    (pa.types.is_float64, "DOUBLE"),
    (pa.types.is_date, "DATE"),
    (has_zone, "TIMESTAMP"),
    (pa.types.is_timestamp, "DATETIME"),
    (pa.types.is_binary, "BYTES"),
)
_PLAIN_NUMBERS: Final = frozenset({"INTEGER", "DECIMAL", "YEAR"})
_NUMBERS: Final = frozenset({*_PLAIN_NUMBERS, "FLOAT", "DOUBLE", "BIT"})
_ZEROFILL_WIDTHS: Final = {
    **dict.fromkeys(("TINYINT", "INT1", "BOOL", "BOOLEAN"), 3),
    **dict.fromkeys(("SMALLINT", "INT2"), 5),
    **dict.fromkeys(("MEDIUMINT", "INT3", "MIDDLEINT"), 8),
    **dict.fromkeys(("INT", "INTEGER", "INT4"), 10),
    **dict.fromkeys(("BIGINT", "INT8", "SERIAL"), 20),
}
_CODECS: Final = {"utf8mb4": "utf-8", "utf8mb3": "utf-8", "ascii": "ascii", "latin1": "cp1252"}
_INTEGER: Final = re.compile(r" *[+-]?[0-9]{1,20} *")
_FIXED: Final = re.compile(r"-?[0-9]{1,38}(\.[0-9]{1,38})?")
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_DATETIME: Final = re.compile(r"\d{4}-\d\d-\d\d( \d\d:\d\d:\d\d(\.\d{1,6})?)?", re.ASCII)
_TIME: Final = re.compile(r"(-?)(\d+):(\d\d):(\d\d)(?:\.(\d{1,6}))?", re.ASCII)
_TIME_MAX: Final = (838 * 60 + 59) * 60 + 59
_HALF_A_SECOND: Final = 500_000
_LONG_MAX: Final = (1 << 63) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversion:
    """The conversion of values from one definition of a column to another one.

    Attributes:
        old: The definition before; None if the log never told it.
        new: The definition after the statement.
        type: The Arrow type of the values afterwards; `null` if it stays.
        is_strict: Whether a value that does not fit would have ended the statement.
        rounds: Whether fractions of seconds that have no room are rounded, not cut; None if the log
            does not tell.
        flavor: The kind of server; None if the log does not tell.
        takes_bytes: Whether the change is by CONVERT TO CHARACTER SET, for which a member of an
            ENUM or SET is the one in the new character set that has the same bytes.
    """

    old: TableColumn | None
    new: TableColumn
    type: pa.DataType
    is_strict: bool = True
    rounds: bool | None = None
    flavor: Flavor | None = None
    takes_bytes: bool = False

    def apply(self, values: Values) -> Values:
        """The values afterwards.

        Args:
            values: All or some values of the column.

        Raises:
            NotToldError: If it is not known what the server made of one of them.
        """
        old_type = values.type
        if pa.types.is_null(self.type):
            return replace(self, type=old_type).apply(values)
        if not len(values):
            return pa.chunked_array([pa.array([], self.type)])
        if self._keeps_all(old_type):
            return self._without_nulls(values, old_type)
        if values.null_count and self._may_be_zero_dates(old_type):
            raise UnknownValuesError("NULL may stand for a zero date")
        if values.null_count == len(values) and not self.new.is_auto_increment:
            nulls: Any = pa.array([None] * len(values), self.type)
            return self._without_nulls(pa.chunked_array([nulls]), old_type)
        convert = self._converter(self._family_before(old_type), old_type)
        if self.old is not None and family_of(self.old) == "DECIMAL" and not is_number(old_type):
            convert = of_decimal(convert)  # one of more digits than rows have numbers for
        return self._without_nulls(mapped(values, convert, self.type), old_type)

    def of_literal(self, value: Any) -> Any:
        """A value of the old definition that a statement gives, afterwards.

        Raises:
            NotToldError: If it is not known what the server makes of it.
        """
        assert self.old is not None, "literals have a type"
        return self._converter(family_of(self.old), pa.string())(value)

    # Values before and after ----------------------------------------------------------------------

    def _keeps_all(self, old_type: pa.DataType) -> bool:
        """True if only attributes changed that no value depends on."""
        old, new = self.old, self.new
        if new.is_generated:
            if old is None or old.generated != new.generated or not is_alike(old, new):
                raise UnknownValuesError("it is computed by the server")
            return True
        if new.is_auto_increment and not (old and old.is_auto_increment):
            return False
        return old is not None and old_type.equals(self.type) and is_alike(old, new)

    def _family_before(self, old_type: pa.DataType) -> str:
        """The family of the old type; of what is not known, what its values allow."""
        if self.old is not None:
            family = family_of(self.old)
            # Members, or what a value of the server's own type says, are not known then.
            if family in {"ENUM", "SET"} and not pa.types.is_string(old_type):
                raise UnknownValuesError(f"its values before are not known as {family}")
            return family
        if pa.types.is_string(old_type):
            return "UNKNOWN TEXT"
        for is_kind, family in _FAMILIES_BY_TYPE:
            if is_kind(old_type):
                return family
        raise UnknownValuesError("its definition before is not in the log")

    def _may_be_zero_dates(self, old_type: pa.DataType) -> bool:
        return pa.types.is_temporal(old_type) and not pa.types.is_temporal(self.type)

    def _without_nulls(self, values: Values, old_type: pa.DataType) -> Values:
        """Replace NULL, where there can be none any more, by the server's value."""
        new = self.new
        if new.is_nullable or not values.null_count:
            return values
        was_nullable = self.old is None or self.old.is_nullable
        if pa.types.is_temporal(self.type):
            # NULLs are zero dates, or become such; but a TIMESTAMP becomes the time of the moment.
            if has_zone(self.type) and was_nullable and has_zone(old_type):
                raise UnknownValuesError("NULL became the time of the statement, or is a zero date")
            return values
        if self.is_strict:
            raise UnknownValuesError("it cannot be NULL any more")
        value = instead_of_null(new, self.type, self.flavor)
        return pc.fill_null(values, pa.scalar(value, self.type))

    # Converters -----------------------------------------------------------------------------------

    def _converter(self, family: str, old_type: pa.DataType) -> Convert:
        new = self.new
        after = family_of(new)
        if after == "JSON" and (self.flavor is Flavor.MARIADB or family == "JSON"):
            after = "TEXT"
        if family == "JSON":
            family = "TEXT"
        if self.takes_bytes and after in {"ENUM", "SET"}:
            return self._member_by_bytes if after == "ENUM" else self._members_by_bytes
        if new.is_auto_increment and not (self.old and self.old.is_auto_increment):
            return without_zero(self._converter_to(after, family, old_type))
        return self._converter_to(after, family, old_type)

    def _converter_to(self, after: str, family: str, old_type: pa.DataType) -> Convert:
        new = self.new
        if after == "INTEGER":
            low, high = integer_range(new)
            return partial(self._integer, family, low, high)
        if after == "DECIMAL":
            return partial(self._decimal, family, *decimal_digits(new))
        if after in {"FLOAT", "DOUBLE"}:
            return partial(self._float, family, after == "FLOAT")
        if after in {"TEXT", "BYTES"}:
            return self._text_or_bytes(family, after, old_type)
        if after in {"ENUM", "SET"} and family in {"TEXT", "ENUM", "SET", "UNKNOWN TEXT"}:
            return partial(self._member if after == "ENUM" else self._members, family)
        if after in {"DATE", "DATETIME", "TIMESTAMP", "TIME"}:
            return self._temporal(family, after)
        if after == "YEAR" and family in {"INTEGER", "YEAR"}:
            return year
        if after == "BIT" and family in {"INTEGER", "BIT"}:
            return partial(bits, (1 << (first_number(new) or 1)) - 1)
        if self.old is not None and family == after and is_alike(self.old, new):
            return same
        raise UnknownValuesError(self._why())

    def _why(self) -> str:
        before = (
            "its definition before is not in the log"
            if self.old is None
            else (f"from {type_text(self.old)}")
        )
        return f"the log does not tell how its values become {type_text(self.new)}, {before}"

    def _integer(self, family: str, low: int, high: int, value: Any) -> int:
        if family in {"INTEGER", "YEAR", "BIT"}:
            number = int(value)
        elif family == "DECIMAL":
            with exactly():
                number = int(Decimal(value).quantize(Decimal(1), ROUND_HALF_UP))
            if number > high > _LONG_MAX:  # MySQL makes the highest signed number of some
                raise UnknownValuesError(self._why())
        elif family in {"FLOAT", "DOUBLE"} and low <= value <= high:
            number = round(value)
        elif family in {"TEXT", "UNKNOWN TEXT"} and _INTEGER.fullmatch(value):
            number = int(value)
            if number > _LONG_MAX:  # as a signed number in MariaDB
                raise UnknownValuesError(self._why())
        elif family == "ENUM" and self.old is not None and value in self.old.arguments:
            number = self.old.arguments.index(value) + 1
        elif family == "DATE":
            number = int(value.strftime("%Y%m%d"))
        else:
            raise UnknownValuesError(self._why())
        return min(max(number, low), high)

    def _decimal(self, family: str, precision: int, scale: int, value: Any) -> Decimal | str:
        if family in {"INTEGER", "YEAR", "BIT", "DECIMAL"}:
            number = Decimal(value)
        elif family == "DOUBLE" and math.isfinite(value):
            number = Decimal(repr(value))
        elif family == "TEXT" and _FIXED.fullmatch(value):
            number = Decimal(value)
        else:
            raise UnknownValuesError(self._why())
        unit = Decimal(1).scaleb(-scale)
        highest = Decimal(10) ** (precision - scale) - unit
        lowest = Decimal(0) if self.new.is_unsigned else -highest
        with exactly():
            rounded = min(max(number, lowest - 1), highest + 1).quantize(unit, ROUND_HALF_UP)
        found = min(max(rounded, lowest), highest)
        return format(found, "f") if pa.types.is_string(self.type) else found

    def _float(self, family: str, is_single: bool, value: Any) -> float:  # noqa: FBT001 - bound
        if len(self.new.arguments) > 1 or family not in _NUMBERS:
            raise UnknownValuesError(self._why())
        number = float(value)
        if self.new.is_unsigned:
            number = max(number, 0.0)
        with np.errstate(over="ignore"):
            found = float(np.float32(number)) if is_single else number
        if not math.isfinite(found):
            raise UnknownValuesError(self._why())
        return found

    def _text_or_bytes(self, family: str, after: str, old_type: pa.DataType) -> Convert:
        new = self.new
        to_text = self._to_text(family)
        if after == "TEXT":
            return partial(self._fitted_text, to_text)
        limit = first_number(new) or BYTES_MAX.get(new.type_name, 1 << 32)
        fixed = binary_bytes(new)
        if family == "BYTES" and pa.types.is_binary(old_type):
            return lambda value: value[:limit].ljust(fixed, b"\0")
        charset = None if self.old is None else self.old.charset
        if family in _PLAIN_NUMBERS:
            charset = "ascii"
        return lambda value: self._encoded(to_text(value), charset)[:limit].ljust(fixed, b"\0")

    def _encoded(self, text: str, charset: str | None) -> bytes:
        codec = _CODECS.get(charset or "")
        if codec is None:
            raise UnknownValuesError(self._why())
        try:
            return text.encode(codec)
        except UnicodeEncodeError:
            raise UnknownValuesError(self._why()) from None

    def _to_text(self, family: str) -> Convert:
        old = self.old
        plain: dict[str, Convert] = {
            **dict.fromkeys(("TEXT", "TIME", "UUID", "INET4", "INET6"), same),
            **{each: partial(self._names, each) for each in ("ENUM", "SET")},
            "UNKNOWN TEXT": self._no_number,
            "YEAR": "{:04d}".format,
            "DATE": date.isoformat,
            "BYTES": self._decoded,
        }
        if family in plain:
            return plain[family]
        if old is not None and family == "INTEGER":
            width = 0
            if old.is_zerofill:
                width = first_number(old) or _ZEROFILL_WIDTHS.get(old.type_name, 0)
            return lambda value: f"{int(value):0{width}d}" if width else str(int(value))
        if family == "DECIMAL" and old is not None and not old.is_zerofill:
            return lambda value: format(value, "f")
        if family == "DATETIME" and old is not None:
            return partial(datetime_text, first_number(old) or 0)
        raise UnknownValuesError(self._why())

    def _names(self, family: str, value: str) -> str:
        for each in value.split(",") if family == "SET" and value else [value]:
            if each:
                self._known_member(family, each)
        return value

    def _no_number(self, value: str) -> str:
        """Text of a column that may have been an ENUM or SET whose members are not known."""
        if value.isdigit():
            raise UnknownValuesError(self._why())
        return value

    def _decoded(self, value: bytes) -> str:
        codec = _CODECS.get(self.new.charset or "")
        if self.new.charset in WIDE:
            raise UnknownValuesError(self._why())
        try:
            if codec is None:
                return value.decode("ascii")
            return value.decode(codec)
        except UnicodeDecodeError:
            raise UnknownValuesError(self._why()) from None

    def _fitted_text(self, to_text: Convert, value: Any) -> str:
        new = self.new
        text: str = to_text(value)
        if not self.is_strict and not self._has_room_for(text):
            raise UnknownValuesError("characters that its character set lacks became others")
        if new.type_name in CHARS:
            text = text[: first_number(new) or (1 if new.type_name in FIXED_CHARS else None)]
        elif new.type_name in TEXTS_MAX and len(text.encode()) > TEXTS_MAX[new.type_name]:
            raise UnknownValuesError("values were cut")
        return text.rstrip(" ") if new.type_name in FIXED_CHARS else text

    def _has_room_for(self, text: str) -> bool:
        old, new = self.old, self.new
        if text.isascii() or (old is not None and old.charset == new.charset):
            return True
        if new.charset == "utf8mb3":
            return max(text) <= "\uffff"
        if new.charset in {"latin1", "ascii"}:
            return is_encodable(text, _CODECS[new.charset])
        return new.charset in CHARACTERS

    def _member(self, family: str, value: str) -> str:
        if family == "ENUM" and not value:
            return ""  # what a value becomes that is no member
        return self._own_member(self._known_member(family, value))

    def _members(self, family: str, value: str) -> str:
        members = value.split(",") if value else []
        chosen = {self._own_member(self._known_member(family, each)) for each in members}
        return ",".join(each for each in self.new.arguments if each in chosen)

    def _member_by_bytes(self, value: str) -> str:
        return value if self._has_same_bytes(value) else ""

    def _members_by_bytes(self, value: str) -> str:
        return ",".join(each for each in value.split(",") if self._has_same_bytes(each))

    def _has_same_bytes(self, text: str) -> bool:
        """True if a text has the same bytes in both character sets."""
        charsets = [each.charset or "" for each in (self.old, self.new) if each is not None]
        if text.isascii() and not WIDE.intersection(charsets):
            return True
        codecs = [_CODECS.get(charset) for charset in charsets]
        found = [text.encode(codec, "ignore") for codec in codecs if codec is not None]
        if len(found) < len(codecs) or max(text, default="") > "\uffff":
            raise UnknownValuesError("members of an ENUM or SET became others")
        return found[0] == found[-1]

    def _known_member(self, family: str, value: str) -> str:
        """A member by its name: rows of a log without names may hold numbers."""
        if family == "UNKNOWN TEXT" or (
            family != "TEXT" and self.old is not None and value not in self.old.arguments
        ):
            raise UnknownValuesError(self._why())
        return value

    def _own_member(self, value: str) -> str:
        """The member that a text means."""
        if not self._has_room_for(value):
            raise UnknownValuesError("characters that its character set lacks became others")
        members = [member.rstrip(" ") for member in self.new.arguments]
        if value in members:
            return value
        is_exact = (self.new.collation or "_ci").endswith(("_bin", "_cs"))
        found = [each for each in members if each.casefold() == value.rstrip(" ").casefold()]
        if is_exact or len(found) != 1:
            raise UnknownValuesError(f"{value!r} is none of its members")
        return found[0]

    def _temporal(self, family: str, after: str) -> Convert:
        digits = first_number(self.new) or 0
        if family == after == "TIME":
            return partial(self._time, digits)
        if family == after == "TIMESTAMP" or (family, after) == ("DATETIME", "DATETIME"):
            return partial(self._moment, digits)
        if (family, after) == ("DATE", "DATETIME"):
            return lambda value: datetime.combine(value, time())
        if (family, after) == ("DATETIME", "DATE"):
            return self._date
        if family == after == "DATE":
            return same
        if family == "TEXT" and after in {"DATE", "DATETIME"}:
            return partial(self._from_text, after, digits)
        raise UnknownValuesError(self._why())

    def _date(self, value: datetime) -> date:
        # Only MySQL rounds here; MariaDB cuts even with TIME_ROUND_FRACTIONAL.
        if self.flavor is Flavor.MARIADB or value.microsecond < _HALF_A_SECOND:
            return value.date()
        return self._moment(0, value).date()

    def _from_text(self, after: str, digits: int, value: str) -> date | datetime:
        found = _DATE.fullmatch(value) if after == "DATE" else _DATETIME.fullmatch(value)
        if found is None or value.startswith("0000"):
            raise UnknownValuesError(self._why())
        try:
            if after == "DATE":
                return date.fromisoformat(value)
            return self._moment(digits, datetime.fromisoformat(value))
        except ValueError:
            raise UnknownValuesError(self._why()) from None

    def _moment(self, digits: int, value: datetime) -> datetime:
        rest = value.microsecond % 10 ** (6 - digits)
        if not rest:
            return value
        return value + timedelta(microseconds=self._change(rest, 10 ** (6 - digits)))

    def _change(self, rest: int, unit: int) -> int:
        """Return the number that, added to a value, rounds or cuts its fraction off."""
        if self.rounds is None:
            raise UnknownValuesError(
                "the log does not tell whether fractions of seconds were rounded or cut"
            )
        return unit - rest if self.rounds and rest * 2 >= unit else -rest

    def _time(self, digits: int, value: str) -> str:
        found = _TIME.fullmatch(value)
        if found is None:
            raise UnknownValuesError(self._why())
        sign, hours, minutes, seconds, fraction = found.groups()
        total = (int(hours) * 60 + int(minutes)) * 60 + int(seconds)
        micros = total * 1_000_000 + int((fraction or "").ljust(6, "0"))
        rest = micros % 10 ** (6 - digits)
        if rest:
            micros += self._change(rest, 10 ** (6 - digits))
        total, part = divmod(micros, 1_000_000)
        if total > _TIME_MAX:
            total, part = _TIME_MAX, 0
        text = f"{total // 3600:02d}:{total // 60 % 60:02d}:{total % 60:02d}"
        text += f".{part:06d}"[: digits + 1] if digits else ""
        return sign + text if micros else text
