"""Rows of an event → which of their columns changed, and the same rows with fewer columns; pure.

No value is decoded: it has as many bytes as `row_count.value_widths` says. This is the reference;
`kernels.images` does the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from binlane.errors import CodecError, TruncatedError
from binlane.log.codec.types import Flavor

Widths = tuple[int, ...]
"""Bytes of each column's values, or minus those of the length before them: `value_widths`."""
_Image = dict[int, bytes | None]
"""The bytes of each value with the length before it, by column; None for NULL."""


def changed_columns(images: bytes, widths: Widths, before: int, after: int) -> int:
    """Return the columns that differ from before to after image in any row of an UPDATE, a bit each.

    Args:
        images: Pairs of images, not compressed.
        widths: The widths of all columns of the table.
        before: The columns that before images hold, a bit each.
        after: The columns that after images hold, a bit each; one that before images lack counts as
            changed.

    Raises:
        CodecError: If the bytes are no such images.
    """
    changed, pair = after & ~before, _read(images, widths, (before, after))
    for old, new in zip(pair, pair, strict=True):
        changed |= sum(1 << column for column, value in new.items() if old.get(column) != value)
    return changed


def cut_images(
    images: bytes,
    widths: Widths,
    present: Sequence[int],
    kept: Sequence[int],
    *,
    flavor: Flavor,
) -> bytes:
    """Row images without some of their columns.

    Args:
        images: The images, which are not compressed.
        widths: The widths of all columns of the table.
        present: The columns that images hold, a bit each; of an UPDATE before and after.
        kept: The columns among them that stay, a bit each; of an UPDATE before and after.
        flavor: MariaDB sets the bits behind those that say what is NULL.

    Raises:
        CodecError: If the bytes are no such images.
    """
    parts: list[bytes] = []
    for number, image in enumerate(_read(images, widths, present)):
        values = [
            value for column, value in image.items() if kept[number % len(kept)] >> column & 1
        ]
        nulls = -1 << len(values) if flavor is Flavor.MARIADB else 0
        for index, value in enumerate(values):
            nulls |= (value is None) << index
        length = (len(values) + 7) // 8
        parts.append((nulls & ((1 << 8 * length) - 1)).to_bytes(length, "little"))
        parts += [value for value in values if value is not None]
    return b"".join(parts)


def keyed_images(
    images: bytes, widths: Widths, key: Sequence[int]
) -> Iterator[tuple[bytes, bytes]]:
    """Images that hold all columns, one by one, each with its key.

    Args:
        images: The images, which are not compressed.
        widths: The widths of all columns of the table.
        key: Numbers of the key's columns, in the order of the key; empty: the whole image is the
            key.

    Yields:
        The bytes of the key's values with the lengths before them; the image.

    Raises:
        CodecError: If the bytes are no such images.
    """
    everything, offset = range(len(widths)), 0
    while offset < len(images):
        start = offset
        values, offset = _image(images, offset, widths, everything)
        image = images[start:offset]
        yield b"".join(values[column] or b"" for column in key) if key else image, image


def whole_images(images: bytes, widths: Widths) -> Iterator[tuple[list[bytes | None], bytes]]:
    """Images that hold all columns, one by one, with their values.

    Args:
        images: The images, which are not compressed; of an UPDATE before and after alternate.
        widths: The widths of all columns of the table.

    Yields:
        The bytes of each column's value with the length before it, None for NULL; the image.

    Raises:
        CodecError: If the bytes are no such images.
    """
    everything, offset = range(len(widths)), 0
    while offset < len(images):
        start = offset
        values, offset = _image(images, offset, widths, everything)
        yield list(values.values()), images[start:offset]


def joined_image(values: Sequence[bytes | None], *, flavor: Flavor) -> bytes:
    """The image of values as `whole_images` gives them.

    Args:
        values: The bytes of each column's value with the length before it, None for NULL.
        flavor: MariaDB sets the bits behind those that say what is NULL.
    """
    nulls = -1 << len(values) if flavor is Flavor.MARIADB else 0
    for index, value in enumerate(values):
        nulls |= (value is None) << index
    length = (len(values) + 7) // 8
    head = (nulls & ((1 << 8 * length) - 1)).to_bytes(length, "little")
    return head + b"".join(value for value in values if value is not None)


def _read(images: bytes, widths: Widths, present: Sequence[int]) -> Iterator[_Image]:
    """Yield the images one by one; those of an UPDATE alternate before and after."""
    shapes = [[column for column in range(len(widths)) if bits >> column & 1] for bits in present]
    offset = 0
    while offset < len(images):
        start = offset
        for columns in shapes:
            image, offset = _image(images, offset, widths, columns)
            yield image
        if offset == start:
            raise CodecError("bytes follow where row images have no columns", offset=start)


def _image(
    images: bytes, offset: int, widths: Widths, columns: Sequence[int]
) -> tuple[_Image, int]:
    """An image, and where it ends."""
    length = (len(columns) + 7) // 8
    nulls = int.from_bytes(images[offset : offset + length], "little")
    offset += length
    image: _Image = {}
    for index, column in enumerate(columns):
        if nulls >> index & 1:
            image[column] = None
            continue
        end = offset + widths[column]
        if widths[column] < 0:
            end = offset - widths[column]
            end += int.from_bytes(images[offset:end], "little")
        image[column] = images[offset:end]
        offset = end
    if offset > len(images):
        raise TruncatedError("the last row ends inside a value", offset=offset)
    return image, offset
