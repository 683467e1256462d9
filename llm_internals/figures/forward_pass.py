"""The figures of ``03_forward_pass``: one block with the shapes on its wires, and the stream through all of them.

Every function takes NumPy arrays and the text of the tokens, calls no stage, and returns a figure of fixed size. The
lengths of the stream are drawn by `one_response.residual_norms`.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch, Rectangle
from matplotlib.patheffects import withStroke

from llm_internals.figures.labels import visible
from llm_internals.figures.style import (
    AMOUNT,
    CHOSEN,
    FAINT,
    INK,
    KEPT,
    MONOSPACE,
    OTHER,
    REMOVED,
    RULE,
    SMALL,
    SOFT,
    TEXT,
    new_figure,
    styled,
)

Number = int | float
Point = tuple[Number, Number]
Shape = tuple[int, ...]

TRUNK = 5.0
"""Where the stream runs in the drawing of a block, which is 100 units wide."""
ROW = 0.21
"""Inches that one block needs in a list of all blocks."""
WIRE = {"color": INK, "linewidth": 1.2}
SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
ARROW = {"arrowstyle": "-|>", "shrinkA": 0, "shrinkB": 0} | WIRE


@styled
def one_block(shapes: Mapping[str, Shape]) -> Figure:
    """One block: the stream as a trunk, the two sub-layers as branches, a name and a shape on every wire.

    `shapes` has the shape of each activation under the name by which a tap is shown it, without the block's prefix.
    """
    figure = new_figure(5.75)
    axes = figure.add_subplot()
    axes.set_axis_off()
    axes.set_xlim(0, 100)
    axes.set_ylim(75, -4)
    axes.annotate("", (TRUNK, 75), (TRUNK, -4), arrowprops=ARROW | {"color": KEPT, "linewidth": 5, "shrinkB": 0})
    for name, y in (("resid_pre", -1.5), ("resid_mid", 36.5), ("resid_post", 71.5)):
        axes.text(TRUNK + 3, y, f"{name} {_spell(shapes[name])}", color=KEPT, va="center", weight="bold")
    _attention_branch(axes, shapes)
    _feed_forward_branch(axes, shapes)
    _box(axes, (78, 71.5), "filled", 11, learned=True)
    axes.text(85, 71.5, "learned weights", color=FAINT, va="center", fontsize=SMALL)
    return figure


def _attention_branch(axes: Axes, shapes: Mapping[str, Shape]) -> None:
    """Out to the right: norm, three projections, rotations; back to the left: scores, softmax, sum, output matrix."""
    _leave_trunk(axes, 11, "ln1.normalized", shapes)
    for name, y in (("q", 3), ("k", 11), ("v", 19)):
        _wire(axes, (47, 11), (47, y), (51, y))
        _box(axes, (56.5, y), f"{name}_proj", 11, learned=True)
    for name, y in (("q", 3), ("k", 11)):
        _wire(axes, (62, y), (76.5, y))
        _label(axes, (69, y - 1.3), f"{name} {_spell(shapes[f'attn.{name}'])}")
        _box(axes, (81, y), "RoPE", 9)
        _wire(axes, (85.5, y), (96, y), (96, 30), (92.5, 30))
        _label(axes, (91, y + 6.4), f"rot_{name}\n{_spell(shapes[f'attn.rot_{name}'])}")
    _wire(axes, (62, 19), (67, 19), (67, 22.5), (45, 22.5), (45, 27.2))
    _label(axes, (73.5, 21.5), f"v {_spell(shapes['attn.v'])}")
    _box(axes, (83.5, 30), "q · k / √d, mask", 18)
    _return_wire(axes, 30, (74.5, 68.5), "attn_scores", shapes["attn.attn_scores"])
    _box(axes, (63, 30), "softmax", 11)
    _return_wire(axes, 30, (57.5, 48), "pattern", shapes["attn.pattern"])
    _box(axes, (45, 30), "· v", 6)
    _return_wire(axes, 30, (42, 34.5), "z", shapes["attn.z"])
    _box(axes, (29, 30), "o_proj", 11, learned=True)
    _join_trunk(axes, 30, 23.5, "attn_out", shapes)


def _feed_forward_branch(axes: Axes, shapes: Mapping[str, Shape]) -> None:
    """Out to the right: norm, gate and what it gates; back to the left: their product and the last matrix."""
    _leave_trunk(axes, 48, "ln2.normalized", shapes)
    for name, tapped, y in (("gate_proj", "pre", 44), ("up_proj", "pre_linear", 52)):
        _wire(axes, (47, 48), (47, y), (51, y))
        _box(axes, (57.5, y), name, 13, learned=True)
        _label(axes, (75 if name == "gate_proj" else 79, y - 1.3), f"mlp.{tapped} {_spell(shapes[f'mlp.{tapped}'])}")
    _wire(axes, (64, 44), (86.5, 44))
    _box(axes, (91, 44), "SiLU", 9)
    _wire(axes, (64, 52), (88, 52), (88, 61.2))
    _wire(axes, (94, 46.4), (94, 64), (91, 64))
    _box(axes, (88, 64), "×", 6)
    _return_wire(axes, 64, (85, 64.5), "mlp.post", shapes["mlp.post"])
    _box(axes, (57.5, 64), "down_proj", 14, learned=True)
    _join_trunk(axes, 64, 50.5, "mlp_out", shapes)


def _leave_trunk(axes: Axes, y: Number, name: str, shapes: Mapping[str, Shape]) -> None:
    """A copy of the stream goes into a norm, and from there on to the right."""
    _wire(axes, (TRUNK, y), (14, y))
    _box(axes, (21, y), "RMSNorm", 14, learned=True)
    axes.plot([28, 47], [y, y], **WIRE)
    _label(axes, (37.3, y - 1.3), name)
    _label(axes, (37.3, y + 3.8), _spell(shapes[name]))


def _join_trunk(axes: Axes, y: Number, start: Number, name: str, shapes: Mapping[str, Shape]) -> None:
    """What a branch has computed is added to the stream."""
    _wire(axes, (start, y), (TRUNK + 2.2, y))
    _label(axes, ((start + TRUNK + 2) / 2, y - 1.3), f"{name} {_spell(shapes[name])}")
    axes.plot(TRUNK, y, "o", markersize=17, markerfacecolor="white", markeredgecolor=KEPT, markeredgewidth=2, zorder=5)
    axes.text(TRUNK, y, "+", zorder=6, ha="center", va="center_baseline", color=KEPT, fontsize=15, weight="bold")


def _return_wire(axes: Axes, y: Number, ends: Point, name: str, shape: Shape) -> None:
    """A wire to the left with its name and shape above it."""
    start, end = ends
    _wire(axes, (start, y), (end, y))
    wide = start - end > 15
    place = (start + end) / 2, y - (1.3 if wide else 3.2)
    _label(axes, place, f"{name} {_spell(shape)}" if wide else f"{name}\n{_spell(shape)}")


def _wire(axes: Axes, *points: Point) -> None:
    """A line through the points, with the head of an arrow at its end."""
    if len(points) > 2:
        axes.plot(*zip(*points[:-1], strict=True), solid_joinstyle="miter", **WIRE)
    axes.annotate("", points[-1], points[-2], arrowprops=ARROW)


def _box(axes: Axes, center: Point, name: str, width: Number, *, learned: bool = False) -> None:
    """A box with a name in it, filled if it has learned weights."""
    corner = (center[0] - width / 2, center[1] - 2.4)
    style = "round,pad=0,rounding_size=0.8"
    face = SOFT if learned else "white"
    axes.add_patch(FancyBboxPatch(corner, width, 4.8, boxstyle=style, facecolor=face, edgecolor=INK, linewidth=1))
    axes.text(*center, name, ha="center", va="center_baseline", fontsize=SMALL, color=INK)


def _label(axes: Axes, place: Point, text: str) -> None:
    """The name of a wire, standing above `place`, on a halo that keeps other wires out of the letters."""
    label = axes.text(*place, text, ha="center", va="bottom", fontsize=SMALL, color=FAINT, linespacing=1.1)
    label.set_path_effects([withStroke(linewidth=3, foreground="white")])


def _spell(shape: Shape) -> str:
    """A shape as the book writes it."""
    return f"[{', '.join(map(str, shape))}]"


@styled
def shares(weights: Mapping[str, Float[np.ndarray, " writers"]]) -> Figure:
    """How much of each sub-layer's output is left in the last vector, on a logarithmic scale; writer 0: the embedding.

    `weights` has a line under the name of each way to place the norm.
    """
    figure = new_figure(3.2)
    axes = figure.add_subplot()
    looks = ((KEPT, "-"), (OTHER, (0, (5, 1.5))))
    for (name, values), (color, dashes) in zip(weights.items(), looks, strict=True):
        axes.plot(values, color=color, linestyle=dashes, linewidth=2.2, label=name)
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(lambda weight, _: _power_of_ten(weight))
    axes.set_xlim(0, max(map(len, weights.values())) - 1)
    axes.grid(axis="y")
    axes.set_xlabel("sub-layer that wrote it (0: the embedding)")
    axes.set_ylabel("its weight in the last vector")
    axes.legend(frameon=False, fontsize=TEXT, loc="lower right")
    return figure


def _power_of_ten(value: Number) -> str:
    """A power of ten as one writes it."""
    exponent = round(float(np.log10(value)))
    return "1" if exponent == 0 else "10" + str(exponent).translate(SUPERSCRIPTS)


@styled
def spread(pieces: Sequence[str], change: Float[np.ndarray, "points seq"]) -> Figure:
    """How much another token at one place changes the stream, for each token (row) and after each block (column).

    A cell in which nothing at all has changed is hatched.
    """
    values = np.asarray(change).T
    figure = new_figure(1.5 + 0.27 * len(values))
    axes = figure.add_subplot()
    image = axes.pcolormesh(values, cmap=AMOUNT, vmin=0, vmax=float(values.max()), edgecolors="white", linewidth=0.6)
    for row, column in np.argwhere(values == 0):
        axes.add_patch(Rectangle((column, row), 1, 1, fill=False, hatch="////", edgecolor=REMOVED, linewidth=0))
    axes.invert_yaxis()
    axes.set_yticks(np.arange(len(values)) + 0.5, [visible(piece) for piece in pieces], fontsize=TEXT, color=INK)
    for label in axes.get_yticklabels():
        label.set_fontfamily(MONOSPACE)
    steps = np.arange(0, values.shape[1], 5)
    axes.set_xticks(steps + 0.5, [str(step) for step in steps])
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel("blocks passed (0: the embedding)")
    axes.spines[:].set_visible(False)
    bar = figure.colorbar(image, ax=axes, aspect=12, pad=0.02)
    bar.set_label("length of the change\n/ length of the vector", color=FAINT)
    bar.outline.set_visible(False)
    return figure


@styled
def written(
    pieces: Sequence[str], stream: Float[np.ndarray, "tokens blocks"], parts: Float[np.ndarray, "2 tokens blocks"]
) -> Figure:
    """How long a vector attention and the feed-forward network add in each block, a panel a token.

    `stream` has the length of the vector that they are added to, `parts` those of the two, attention first.
    """
    figure = new_figure(0.7 + 2.1 * len(pieces))
    panels = figure.subplots(len(pieces), 1, sharex=True, squeeze=False)[:, 0]
    for token, (axes, piece) in enumerate(zip(panels, pieces, strict=True)):
        blocks = np.arange(np.shape(stream)[1])
        axes.plot(blocks, stream[token], color=REMOVED, linewidth=5, alpha=0.6, label="the stream before", zorder=1)
        looks = (("attention adds", OTHER, "s", (0, (4, 2))), ("the feed-forward network adds", KEPT, "o", "-"))
        for (name, color, marker, dashes), values in zip(looks, parts[:, token], strict=True):
            axes.plot(blocks, values, color=color, marker=marker, markersize=4, linestyle=dashes, label=name)
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.10g}")
        axes.set_title(piece, loc="left", fontsize=TEXT, color=INK)
        axes.set_ylabel("length")
        axes.grid(axis="y")
        axes.set_xlim(-0.5, len(blocks) - 0.5)
    lines, names = panels[0].get_legend_handles_labels()
    figure.legend(lines, names, frameon=False, fontsize=SMALL, loc="outside upper left", ncols=3)
    panels[-1].set_xlabel("block")
    return figure


@styled
def numbers_of_vectors(
    names: Sequence[str], vectors: Float[np.ndarray, "tokens hidden_size"], named: Sequence[int]
) -> Figure:
    """The absolute values of all numbers of some vectors on one logarithmic scale, a panel a vector.

    The dimensions in `named` are labelled in each panel.
    """
    figure = new_figure(0.7 + 1.8 * len(names))
    panels = figure.subplots(len(names), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
    for axes, name, vector, color in zip(panels, names, np.abs(vectors), (OTHER, KEPT), strict=False):
        axes.scatter(np.arange(len(vector)), vector, s=7, color=color, linewidth=0)
        for dimension in named:
            place = (dimension, vector[dimension])
            label = axes.annotate(str(dimension), place, (5, 0), textcoords="offset points", va="center", color=INK)
            label.set_path_effects([withStroke(linewidth=3, foreground="white")])
        axes.set_title(name, loc="left", fontsize=TEXT, color=INK)
        axes.set_ylabel("absolute value")
        axes.grid(axis="y")
    panels[0].set_yscale("log")
    panels[0].yaxis.set_major_formatter(lambda value, _: f"{value:,.10g}")
    panels[0].set_xlim(-6, np.shape(vectors)[1] + 24)
    panels[-1].set_xlabel("dimension")
    return figure


@styled
def blocks_removed(bits: Float[np.ndarray, " blocks"], intact: Number, blind: Number, answers: Sequence[str]) -> Figure:
    """What a text costs when one block is left out, a bar a block, and the token that then comes first elsewhere.

    Lines stand at the cost with all blocks and at that of guessing blindly.
    """
    values = np.asarray(bits)
    rows = np.arange(len(values))
    figure = new_figure(1.0 + ROW * len(values))
    axes = figure.add_subplot()
    axes.barh(rows, values, height=0.7, color=[CHOSEN if value > blind else KEPT for value in values])
    for place, label, side, gap in ((intact, "all blocks", "left", 4), (blind, "blind guessing", "right", -4)):
        axes.axvline(place, color=INK, linewidth=1.2, linestyle=(0, (3, 2)))
        axes.annotate(label, (place, -0.9), (gap, 0), textcoords="offset points", ha=side)
    limit = float(values.max()) * 1.02
    for row, piece in zip(rows, answers, strict=True):
        axes.text(limit * 1.02, row, visible(piece), va="center", color=INK, fontsize=SMALL, family=MONOSPACE)
    axes.text(limit * 1.02, -0.9, "then first", ha="left", color=FAINT)
    axes.set_yticks(rows, [str(row) for row in rows])
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(values) - 0.4, -1.7)
    axes.set_xlim(0, limit)
    axes.set_xlabel("bits a token for the text")
    axes.set_ylabel("block that is left out")
    axes.grid(axis="x", color=RULE)
    return figure
