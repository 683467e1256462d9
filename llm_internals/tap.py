"""Stage 0: how a stage reports what it computed, and how a caller may replace it.

A tap is a function of a name and a tensor.
Every stage calls it with each intermediate result; what it returns, if anything, takes the result's place.
So one mechanism serves to record (`Recorder`), to draw, and to ablate.
Names follow TransformerLens without its ``hook_`` prefix, for example ``blocks.0.attn.pattern``.
Two things differ from there: ``normalized`` is shown after the norm's gain instead of before it, and q, k, v and z have
their heads before their positions.

Chapter: ``03_forward_pass``.
Source: the activation names of TransformerLens, ``transformer_lens/hook_points.py`` and ``components/``.
"""

from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase

from torch import Tensor

Tap = Callable[[str, Tensor], Tensor | None]


def report(tap: Tap | None, name: str, value: Tensor) -> Tensor:
    """Show ``value`` to ``tap`` and return what the forward pass goes on with.

    Raises
    ------
    ValueError
        If the tap returns a tensor of another shape or dtype than it was shown.

    Examples
    --------
    >>> import torch
    >>> report(lambda name, value: value * 0, "resid", torch.ones(2))
    tensor([0., 0.])
    """
    if tap is None:
        return value
    replacement = tap(name, value)
    if replacement is None:
        return value
    if replacement.shape != value.shape or replacement.dtype != value.dtype:
        raise ValueError(
            f"the tap must replace {name!r} by a tensor of shape {tuple(value.shape)} and dtype {value.dtype}, "
            f"but returned {tuple(replacement.shape)} and {replacement.dtype}"
        )
    return replacement


def prefixed(tap: Tap | None, prefix: str) -> Tap | None:
    """The same tap for a part of the model: names are reported with ``prefix`` in front.

    Examples
    --------
    >>> import torch
    >>> passed_on = prefixed(lambda name, value: print(name), "blocks.0.")("resid_pre", torch.ones(1))
    blocks.0.resid_pre
    """
    if tap is None:
        return None
    return lambda name, value: report(tap, prefix + name, value)


def scaled(factors: Mapping[str, Tensor | int | float]) -> Tap:
    """A tap that multiplies each named result by its factor, and changes nothing else.

    A factor of 0 silences a part of the model, a tensor of ones and zeros a part of a result.

    Examples
    --------
    >>> import torch
    >>> silent = scaled({"blocks.0.mlp_out": 0.0})
    >>> silent("blocks.0.mlp_out", torch.ones(2)), silent("blocks.0.attn_out", torch.ones(2))
    (tensor([0., 0.]), None)
    """
    return lambda name, value: value * factors[name] if name in factors else None


class Recorder:
    """A tap that keeps a copy of each tensor whose name matches one of the patterns, and changes nothing.

    Parameters
    ----------
    *patterns : str
        Shell-style patterns such as ``"blocks.*.resid_post"``; none given keeps everything.

    Attributes
    ----------
    tensors : dict of str to Tensor
        What the last pass reported, in the order of computation.

    Examples
    --------
    >>> import torch
    >>> recorder = Recorder("*.pattern")
    >>> recorder("blocks.0.attn.pattern", torch.ones(1)); recorder("blocks.0.resid_mid", torch.ones(1))
    >>> list(recorder.tensors)
    ['blocks.0.attn.pattern']
    """

    def __init__(self, *patterns: str) -> None:
        self.patterns = patterns or ("*",)
        self.tensors: dict[str, Tensor] = {}

    def __call__(self, name: str, value: Tensor) -> None:
        """Keep a copy of ``value`` if its name is asked for."""
        if any(fnmatchcase(name, pattern) for pattern in self.patterns):
            self.tensors[name] = value.detach().clone()

    def __getitem__(self, name: str) -> Tensor:
        return self.tensors[name]
