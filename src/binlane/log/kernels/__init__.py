"""The inner loops of the fast paths: functions over arrays that numba compiles.

A kernel takes contiguous arrays and int64 numbers and gives a status, a count or a position. It
allocates nothing, raises nothing, uses no global but constants and checks every length against the
buffer; buffers are padded by 64 bytes behind what they hold. The same functions run as plain
Python, which is how tests look at them, and nothing here imports the rest of binlane.

`load` gives the kernels to whoever calls them, `build` compiles them ahead, `memory` has what
kernels share. Every other module has kernels and lists them in `EXPORTS`, each with its signature.
"""

from __future__ import annotations
