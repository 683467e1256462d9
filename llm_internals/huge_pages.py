"""The weights file: memory for the matrices, in large pages where the system has them.

A decode step walks once through all weights. The processor translates addresses page by page and remembers few pages,
so with pages of 4 kB it keeps looking them up. Linux backs memory by pages of 2 MB if a program asks, and then there is
less to look up. One reservation serves all matrices, since each alone would fill its last large page only in part.

Leaves out everything that needs rights or settings of the system, such as reserved huge pages; where large pages can't
be asked for, it is ordinary memory.

Chapter: ``07_generation_loop``.
Source: the Linux kernel's documentation, ``admin-guide/mm/transhuge.rst``; ``madvise(2)``.
"""

import math
import mmap
from collections.abc import Callable
from contextlib import suppress

import torch
from jaxtyping import Float32
from torch import Tensor

Allocator = Callable[..., Float32[Tensor, "..."]]
"""Sizes of the axes -> a tensor of float32 that holds anything, as `torch.empty` gives it."""

ALIGNMENT = 64
"""Bytes of a line of the processor's cache, on which every tensor starts."""


def allocator(numbers: int) -> Allocator:
    """Reserve room for so many float32 numbers, and return what hands it out, a tensor at a time.

    A request that no longer fits gets memory of its own. The room is freed with the last tensor that lies in it.

    Examples
    --------
    >>> empty = allocator(100)
    >>> empty(3, 4).shape, empty(2).data_ptr() % ALIGNMENT
    (torch.Size([3, 4]), 0)
    """
    room = _reserve(numbers)
    taken = 0

    def empty(*shape: int) -> Float32[Tensor, "..."]:
        nonlocal taken
        start, end = taken, taken + math.prod(shape)
        if end > len(room):
            return torch.empty(*shape)
        taken = math.ceil(end * 4 / ALIGNMENT) * ALIGNMENT // 4
        return room[start:end].view(*shape)

    return empty


def _reserve(numbers: int) -> Float32[Tensor, " numbers"]:
    """Memory that only this process has, in large pages if the system knows the request."""
    if not numbers or not hasattr(mmap, "MADV_HUGEPAGE"):
        return torch.empty(numbers)
    memory = mmap.mmap(-1, 4 * numbers, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    with suppress(OSError):  # a kernel that was built without them
        memory.madvise(mmap.MADV_HUGEPAGE)
    return torch.frombuffer(memory, dtype=torch.float32)
