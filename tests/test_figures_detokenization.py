"""The figures of chapter 06: they show the bytes that they are given, and spell what their font can't draw."""

import warnings
from collections.abc import Callable

import matplotlib
import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.patches import Circle, Rectangle

from llm_internals.byte_alphabet import CHARACTER_OF_BYTE
from llm_internals.figures import detokenization, style
from llm_internals.figures.detokenization import Arrival
from llm_internals.figures.style import to_png

FAMILY = "👨‍👩‍👧".encode()
ARRIVALS = [
    Arrival(1, b" \xec", " ", "", b"\xec"),
    Arrival(2, b"\x9d", "", "", b"\xec\x9d"),
    Arrival(3, b"\xb4", "이", "", b""),
    Arrival(4, b"$x^2", "", "$x^2", b""),
    Arrival(5, " é\n🦙".encode(), "$x^2 é\n🦙", "", b""),
    Arrival(6, b"stop", "", "", b""),
]
DRAWINGS: dict[str, Callable[[], Figure]] = {
    "byte_alphabet": lambda: detokenization.byte_alphabet(CHARACTER_OF_BYTE, {10, 32}),
    "cuts": lambda: detokenization.cuts([10813, 5, 77], [FAMILY[:2], FAMILY[2:3], FAMILY[3:]]),
    "character_machine": detokenization.character_machine,
    "stop_machine": lambda: detokenization.stop_machine("aab"),
    "timeline": lambda: detokenization.timeline(ARRIVALS, "stop string complete"),
}
"""One call of each figure function."""


def words(figure: Figure) -> list[str]:
    """All text on a figure."""
    return [text.get_text() for axes in figure.axes for text in axes.texts]


@pytest.mark.parametrize("draw", DRAWINGS.values(), ids=DRAWINGS.keys())
def test_a_figure_is_the_same_bytes_every_time_and_needs_no_other_font(draw: Callable[[], Figure]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert to_png(draw()) == to_png(draw())


@pytest.mark.parametrize("draw", DRAWINGS.values(), ids=DRAWINGS.keys())
def test_no_text_is_smaller_than_eleven_pixels_and_nothing_sticks_out(draw: Callable[[], Figure]) -> None:
    figure = draw()
    tight = figure.get_tightbbox()
    assert figure.get_figwidth() == style.WIDTH
    assert min(tight.x0, tight.y0, style.WIDTH - tight.x1, figure.get_figheight() - tight.y1) >= 0
    sizes = [text.get_fontsize() for text in figure.findobj(matplotlib.text.Text) if text.get_text()]
    assert min(sizes) * style.PAGE_WIDTH / (72 * style.WIDTH) >= 11


@pytest.mark.parametrize(
    ("text", "spelling"),
    [
        (" estás", "␣estás"),
        ("Привет\n", "Привет↵"),
        (" 이해", "U+C774 U+D574"),
        ("\u200d", "U+200D"),
        ("é".encode(), "é"),
        (b" \xf0\x9f", "␣f09f"),
        ("🦙".encode(), "U+1F999"),
        ("", ""),
    ],
)
def test_text_is_spelt_with_what_the_font_has(text: str | bytes, spelling: str) -> None:
    assert detokenization.spelt(text) == spelling


def test_bytes_that_do_not_stand_for_themselves_are_shaded_and_the_named_ones_set_off() -> None:
    boxes = [patch for patch in DRAWINGS["byte_alphabet"]().axes[0].patches if isinstance(patch, Rectangle)]
    colors = [to_hex(box.get_facecolor(), keep_alpha=True).upper() for box in boxes]
    assert [byte for byte, color in enumerate(colors) if color == style.KEPT.upper() + "FF"] == [10, 32]
    plain = [byte for byte, color in enumerate(colors) if color.endswith("00")]
    assert plain == [byte for byte in range(256) if CHARACTER_OF_BYTE[byte] == chr(byte)]


def test_the_cuts_have_a_box_for_each_token_byte_and_character() -> None:
    figure = DRAWINGS["cuts"]()
    boxes = [patch for patch in figure.axes[0].patches if isinstance(patch, Rectangle)]
    assert len(boxes) == 3 + len(FAMILY) + len(FAMILY.decode())
    assert words(figure)[:3] == ["10813", "5", "77"]
    assert words(figure)[-3:] == ["U+1F469", "U+200D", "U+1F467"]


def test_the_machine_for_characters_has_a_state_for_each_number_of_missing_bytes() -> None:
    figure = DRAWINGS["character_machine"]()
    assert len([patch for patch in figure.axes[0].patches if isinstance(patch, Circle)]) == 4
    assert {"f0–f4", "e0–ef", "c2–df", "80–bf", "80–bf: show the character", "00–7f:\nshow it"} <= set(words(figure))


@pytest.mark.parametrize(
    ("stop", "fallbacks"),
    [
        ("aab", ["a: show a"]),
        ("ab", ["a: show a"]),
        ("b", []),
        ("abac", ["a: show a", "a: show aba", "b: show ab"]),
        ("stop", ["s: show s", "s: show st", "s: show sto"]),
    ],
)
def test_a_letter_that_breaks_a_match_keeps_what_may_begin_it_anew(stop: str, fallbacks: list[str]) -> None:
    assert [word for word in words(detokenization.stop_machine(stop)) if ": show " in word[:8]] == fallbacks


def test_the_timeline_adds_up_what_came_and_what_was_shown() -> None:
    figure = DRAWINGS["timeline"]()
    come, shown = (line.get_ydata() for line in figure.axes[0].lines)
    np.testing.assert_array_equal(come, [0, 2, 3, 4, 8, 16, 20, 20])
    np.testing.assert_array_equal(shown, [0, 1, 1, 4, 4, 16, 16, 16])
    assert words(figure) == [
        "stop string complete",
        *["␣ec", "␣", "9d", "", "b4", "U+C774", "$x^2", "", "U+00E9 U+…", "U+0024 U+0078 U+…", "stop", ""],
    ]


def test_the_stepper_gets_bytes_in_hexadecimal_and_text_as_it_is() -> None:
    data = detokenization.stepper("a name", ARRIVALS)
    assert data["name"] == "a name"
    assert data["steps"][1] == {"id": 2, "bytes": "9d", "piece": "", "held": "", "unfinished": "ec 9d"}
