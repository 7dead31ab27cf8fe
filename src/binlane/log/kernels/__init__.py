"""The inner loops of the fast paths: functions over arrays that numba compiles.

A kernel takes contiguous arrays and int64 numbers and gives a status, a count or a position. It
allocates nothing, raises nothing, uses no global but constants and checks every length against the
buffer; buffers are padded by 64 bytes behind what they hold. The same functions run as plain
Python, which is how tests look at them, and nothing here imports the rest of binlane.

`load` gives the kernels to whoever calls them, `build` compiles them ahead, `memory` has what all
kernels share. Modules with kernels list them in `EXPORTS`, each with its signature; the others are
parts of theirs.
"""

from __future__ import annotations
