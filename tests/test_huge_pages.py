"""`llm_internals.huge_pages`: one reservation, handed out without gaps or overlaps, whatever the system offers."""

import gc
import mmap
import sys
import weakref
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from llm_internals import huge_pages
from llm_internals.huge_pages import ALIGNMENT, allocator

shapes = st.lists(st.lists(st.integers(1, 6), min_size=1, max_size=3), max_size=6)


@given(st.integers(0, 300), shapes)
def test_tensors_are_of_their_shape_and_never_overlap_even_when_the_room_is_gone(numbers, shapes):
    empty = allocator(numbers)
    tensors = [empty(*shape) for shape in shapes]
    for value, tensor in enumerate(tensors):
        tensor.fill_(value)
    for value, (shape, tensor) in enumerate(zip(shapes, tensors, strict=True)):
        assert (tuple(tensor.shape), tensor.dtype) == (tuple(shape), torch.float32)
        assert (tensor == value).all()
        assert tensor.is_contiguous()


def test_tensors_lie_one_behind_the_other_on_lines_of_the_cache():
    empty = allocator(100)
    first, second = empty(3, 5), empty(7)
    assert second.data_ptr() - first.data_ptr() == ALIGNMENT
    assert second.data_ptr() % ALIGNMENT == 0
    assert second.untyped_storage().data_ptr() == first.untyped_storage().data_ptr()


def test_without_the_request_it_is_ordinary_memory(monkeypatch):
    monkeypatch.delattr(mmap, "MADV_HUGEPAGE", raising=False)
    assert allocator(10)(2, 5).fill_(1).sum() == 10


def test_a_kernel_that_refuses_the_request_gives_ordinary_memory(monkeypatch):
    class Refusing(mmap.mmap):
        def madvise(self, *_):
            raise OSError(22, "Invalid argument")

    monkeypatch.setattr(huge_pages.mmap, "mmap", Refusing)
    assert allocator(10)(2, 5).fill_(1).sum() == 10


@pytest.mark.skipif(not hasattr(mmap, "MADV_HUGEPAGE"), reason="there is no such request on this system")
def test_the_room_is_freed_with_the_last_tensor(monkeypatch):
    made = []

    class Watched(mmap.mmap):
        def __init__(self, *_, **__):
            made.append(weakref.ref(self))

    monkeypatch.setattr(huge_pages.mmap, "mmap", Watched)
    empty = allocator(1000)
    kept = empty(10)
    del empty
    gc.collect()
    assert made[0]() is not None
    del kept
    gc.collect()
    assert made[0]() is None


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's list of mappings is read from /proc")
def test_the_weights_lie_in_memory_for_which_large_pages_were_asked(lm):
    """`hg` among the flags of the mapping: the kernel was asked, whether or not it has such pages to give."""
    address, flags = lm.weights.layers[3].mlp.up_proj.data_ptr(), ""
    inside = False
    for line in Path("/proc/self/smaps").read_text(encoding="utf-8").splitlines():
        head = line.split()[0]
        if "-" in head and not head.endswith(":"):
            low, high = (int(edge, 16) for edge in head.split("-"))
            inside = low <= address < high
        elif inside and head == "VmFlags:":
            flags = line
    assert " hg" in flags
