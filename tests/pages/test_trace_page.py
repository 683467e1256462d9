"""The page of a recorded response, opened from disk in a browser and used as a reader uses it."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from llm_internals.checkpoint import LanguageModel
from llm_internals.figures import style
from llm_internals.figures.labels import visible
from llm_internals.sampling import SamplingParams
from llm_internals.trace import Trace, trace
from llm_internals.trace.page import SCRIPTS, page
from tests.tiny_model import ID, chain_language_model, random_language_model
from tools.browser import NARROW, WIDE, Visit, grave_violations, overflow, watched_page

STAGES = ("tokenize", "embed", "forward pass", "logits", "sample", "detokenize", "loop")
PARAMS = SamplingParams(temperature=0.7, top_k=50, top_p=0.9, seed=7)
LARGEST_PAGE = 170_000
"""Bytes that the page of this response may have: 65,000 of them are the page itself, the rest is the recording."""


@pytest.fixture(scope="module")
def recorded(lm: LanguageModel) -> Trace:
    return trace(lm, [{"role": "user", "content": "What is the capital of Australia?"}], PARAMS, max_tokens=6)


@pytest.fixture
def opened(browser: BrowserContext, tmp_path: Path):
    """Opens the page of a trace, and fails afterwards if it asked for anything or complained."""
    with watched_page(browser) as (tab, visit):

        def open_trace(made: Trace, at: str = "") -> Page:
            path = tmp_path / "trace.html"
            path.write_text(made.to_html(), encoding="utf-8")
            tab.set_viewport_size(WIDE)
            tab.emulate_media(color_scheme="light", reduced_motion="reduce")
            tab.goto(path.as_uri() + at)
            return tab

        yield open_trace
        assert visit == Visit()


def chosen(tab: Page) -> str:
    """Where the reader is: the token's number and the stage's name."""
    label = tab.locator(".token[aria-checked=true]").get_attribute("aria-label") or ""
    return f"{label.split(',')[0]}, {tab.locator('[role=tab][aria-selected=true] .name').inner_text()}"


# The file


class Addresses(HTMLParser):
    """Collects whatever a browser would fetch."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [value for name, value in attrs if name in ("src", "href", "srcset", "action", "data") and value]


def test_the_page_is_one_small_file_that_names_no_other(recorded: Trace) -> None:
    html = recorded.to_html()
    parser = Addresses()
    parser.feed(html)
    assert parser.found == ["data:,"], "an empty icon, so that no browser asks for one"
    assert set(re.findall(r"https?://[^\s\"']+", html)) == {"http://www.w3.org/2000/svg"}, "a name, not an address"
    assert "@import" not in html
    assert "default-src 'none'" in html
    assert len(html.encode()) < LARGEST_PAGE


def test_every_script_in_the_folder_is_used_once() -> None:
    names = [file.name for file in files("llm_internals.trace.page").iterdir() if file.name.endswith(".js")]
    assert sorted(SCRIPTS) == sorted(names)


@pytest.mark.parametrize("name", ["KEPT", "CHOSEN", "RIGHT", "OTHER", "SOFT", "REMOVED", "INK", "FAINT", "RULE"])
def test_colours_mean_what_they_mean_in_the_book(name: str) -> None:
    css = (files("llm_internals.trace.page") / "style.css").read_text(encoding="utf-8")
    light = css[: css.index("}")]
    assert f"--{name.lower()}: {getattr(style, name)};" in light


@pytest.mark.parametrize("text", ["</script><script>alert(1)</script>", "<!-- <script", "$data ${data} $$", "&lt; ]]>"])
def test_text_can_neither_end_the_script_nor_fill_a_place_in_the_page(text: str) -> None:
    html = page(text, {"prompt": text})
    data = html.split('id="recording">')[1].split("</script>")[0]
    assert json.loads(data) == {"prompt": text}
    assert html.count("<script") == 2
    assert "<title>" + text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;") in html


# Reading it


def test_every_stage_is_accessible_and_fits_the_window(recorded: Trace, opened) -> None:
    tab = opened(recorded)
    for stage in STAGES:
        tab.get_by_role("tab", name=stage, exact=True).click()
        expect(tab.locator(".panel:visible h2")).to_have_count(1)
    expect(tab.locator(".seen")).to_have_count(len(recorded.prompt_ids))
    tab.evaluate("() => document.querySelectorAll('.panel').forEach((panel) => (panel.hidden = false))")
    for scheme in ("light", "dark"):
        tab.emulate_media(color_scheme=scheme)
        expect(tab.locator("html")).to_have_attribute("data-theme", scheme)
        assert grave_violations(tab) == [], scheme
    for size in (NARROW, WIDE):
        tab.set_viewport_size(size)
        assert overflow(tab) == [], size


def test_keys_go_from_token_to_token_and_with_shift_from_stage_to_stage(recorded: Trace, opened) -> None:
    tab = opened(recorded)
    assert chosen(tab) == "token 1, tokenize"
    walk = [
        ("ArrowLeft", "token 1, tokenize"),
        ("ArrowRight", "token 2, tokenize"),
        ("Shift+ArrowRight", "token 2, embed"),
        ("Shift+ArrowLeft", "token 1, loop"),
        ("Shift+ArrowRight", "token 2, embed"),
        ("ArrowLeft", "token 1, embed"),
        ("Shift+ArrowLeft", "token 1, tokenize"),
        ("Shift+ArrowLeft", "token 1, tokenize"),
    ]
    for key, place in walk:
        tab.keyboard.press(key)
        assert chosen(tab) == place, key
    for _ in range(20):
        tab.keyboard.press("ArrowRight")
    assert chosen(tab) == f"token {len(recorded.steps)}, tokenize"


def test_the_next_button_walks_through_all_stages_of_all_tokens(recorded: Trace, opened) -> None:
    tab = opened(recorded)
    places = [chosen(tab)]
    while tab.locator(".next").is_enabled():
        tab.locator(".next").click()
        places.append(chosen(tab))
    expected = [f"token 1, {stage}" for stage in STAGES]
    expected += [f"token {n}, {stage}" for n in range(2, len(recorded.steps) + 1) for stage in STAGES[1:]]
    assert places == expected, "the prompt is tokenized once"


def test_arrow_keys_in_a_group_of_controls_move_within_it(recorded: Trace, opened) -> None:
    tab = opened(recorded)
    tab.get_by_role("tab", name="tokenize", exact=True).focus()
    tab.keyboard.press("ArrowRight")
    tab.keyboard.press("ArrowDown")
    assert chosen(tab) == "token 1, forward pass"
    assert tab.evaluate("document.activeElement.textContent") == "3forward pass"
    tab.keyboard.press("End")
    assert chosen(tab) == "token 1, loop"
    tab.locator(".token[aria-checked=true]").focus()
    tab.keyboard.press("ArrowRight")
    assert chosen(tab) == "token 2, loop"
    assert tab.evaluate("document.activeElement.getAttribute('aria-checked')") == "true"


def test_each_group_is_one_stop_of_the_tab_key(recorded: Trace, opened) -> None:
    tab = opened(recorded, "#stage=forward+pass")
    expect(tab.locator(".seen").first).to_be_visible()
    for group in (".token", "[role=tab]", ".cell", ".seen"):
        assert tab.locator(f"{group}[tabindex='0']").count() == 1, group


def test_layer_and_head_are_picked_by_slider_and_by_map(recorded: Trace, opened) -> None:
    tab = opened(recorded, "#token=3&stage=forward+pass&layer=12&head=3")
    expect(tab.locator("[role=gridcell][aria-selected=true]")).to_have_attribute(
        "aria-label", re.compile("^block 12, head 3")
    )
    tab.locator("[role=gridcell][aria-selected=true]").focus()
    for key in ("ArrowRight", "ArrowRight", "ArrowDown", "ArrowLeft"):
        tab.keyboard.press(key)
        tab.wait_for_timeout(20)
    expect(tab.get_by_role("heading", name="Where block 13, head 4 looks")).to_be_visible()
    tab.get_by_label("block", exact=False).first.focus()
    tab.keyboard.press("ArrowRight")
    expect(tab.get_by_role("heading", name="Where block 14, head 4 looks")).to_be_visible()
    assert chosen(tab) == "token 3, forward pass", "the slider kept the key for itself"
    assert "layer=14&head=4" in tab.url


def test_the_attention_shown_is_the_attention_recorded(recorded: Trace, opened) -> None:
    tab = opened(recorded, "#token=2&stage=forward+pass&layer=17&head=3")
    expect(tab.locator(".seen").first).to_be_visible()
    labels = tab.locator(".seen").evaluate_all("chips => chips.map((chip) => chip.getAttribute('aria-label'))")
    weights = recorded.steps[1].attention.weights()
    assert [float(label.rsplit(": ", 1)[1]) for label in labels] == pytest.approx(weights[17, 3].tolist(), abs=0.0051)
    cells = tab.locator(".cell").evaluate_all("cells => cells.map((cell) => cell.getAttribute('aria-label'))")
    source = int(re.search(r"position (\d+)", tab.locator(".heads h3").inner_text())[1])
    assert source == int(weights[17, 3].argmax())
    shown = [float(label.rsplit(": ", 1)[1]) for label in cells]
    assert shown == pytest.approx(weights[:, :, source].T.ravel().tolist(), abs=0.0051)


def test_tokens_are_spelt_as_in_the_book(recorded: Trace, opened) -> None:
    tab = opened(recorded)
    shown = tab.locator(".panel:visible .chips .chip").all_inner_texts()
    assert shown == [visible(recorded.tokens[id]) for id in recorded.prompt_ids]
    assert tab.locator(".panel:visible .chips .special").count() == sum(
        id in recorded.special_ids for id in recorded.prompt_ids
    )


def test_the_funnel_shows_what_each_operator_left(recorded: Trace, opened) -> None:
    tab = opened(recorded, "#stage=sample")
    rows = tab.locator(".operator:not(.off)").all_inner_texts()
    step = recorded.steps[0]
    active = [operator for operator in step.operators if operator.active]
    assert len(rows) == 1 + len(active) == 4
    for row, operator in zip(rows[1:], active, strict=True):
        assert f"keeps {operator.after:,}" in row
    assert tab.locator(".operator[aria-checked=true]").inner_text().startswith("top-p 0.9")
    assert f"{step.u:.4f}" in tab.locator(".drawn").inner_text()
    tab.get_by_role("radio", name=re.compile("^top-k")).click()
    top_k = next(operator for operator in active if operator.name == "top_k")
    chips = tab.locator(".panel:visible table .chip").all_inner_texts()
    assert chips == [visible(recorded.tokens[id]) for id, _ in top_k.top]


def test_the_lens_shows_every_layer(recorded: Trace, opened) -> None:
    tab = opened(recorded, "#stage=logits&layer=28")
    rows = tab.locator(".lens tbody tr")
    assert rows.count() == 31
    assert tab.locator(".lens .picked th").inner_text() == "block 28"
    last = rows.nth(30).locator(".chip").all_inner_texts()
    assert last == [visible(recorded.tokens[id]) for id, _ in recorded.steps[0].lens[-1].top]


def test_the_address_brings_a_reader_back_to_the_place(recorded: Trace, opened) -> None:
    tab = opened(recorded, "#token=4&stage=sample")
    assert chosen(tab) == "token 4, sample"
    tab.keyboard.press("ArrowRight")
    tab.reload()
    assert chosen(tab) == "token 5, sample"


@pytest.mark.parametrize("place", ["#token=99&stage=nothing&layer=1e9&head=-1", "#token=", "#%E0%A4%A", "#stage=<b>"])
def test_an_address_that_leads_nowhere_is_taken_for_the_nearest_place(recorded: Trace, opened, place: str) -> None:
    tab = opened(recorded, place)
    assert chosen(tab) in ("token 1, tokenize", f"token {len(recorded.steps)}, tokenize")


def test_colours_follow_the_system_until_the_reader_decides(recorded: Trace, opened) -> None:
    tab = opened(recorded)
    theme = tab.locator("html")
    button = tab.get_by_role("button", name="Colours")
    expect(theme).to_have_attribute("data-theme", "light")
    tab.emulate_media(color_scheme="dark")
    expect(theme).to_have_attribute("data-theme", "dark")
    button.click()
    expect(theme).to_have_attribute("data-theme", "light")
    button.click()
    expect(theme).to_have_attribute("data-theme", "dark")
    button.click()
    expect(button).to_have_text("Colours: auto")


def test_a_screen_reader_hears_which_token_came(recorded: Trace, opened) -> None:
    tab = opened(recorded)
    tab.keyboard.press("ArrowRight")
    expect(tab.locator("#announcement")).to_contain_text(
        f"Token 2 of 6: {visible(recorded.tokens[recorded.steps[1].id])}"
    )


# Unusual responses


def test_a_hostile_token_is_shown_and_does_nothing(opened) -> None:
    made = trace(random_language_model(), "abc", SamplingParams(temperature=0), max_tokens=3)
    evil = b"</script><img src=x onerror=alert(1)><script>alert(2)</script>\x1b[31m"
    changed = replace(made, tokens=dict.fromkeys(made.tokens, evil), prompt=evil.decode())
    tab = opened(changed)
    tab.on("dialog", lambda dialog: pytest.fail(dialog.message))
    for stage in STAGES:
        tab.get_by_role("tab", name=stage, exact=True).click()
    assert tab.locator("img").count() == 0
    tab.get_by_role("tab", name="tokenize", exact=True).click()
    shown = tab.locator(".panel:visible .chips .chip").first.inner_text()
    assert shown == visible(evil)
    tab.set_viewport_size(NARROW)
    assert overflow(tab) == []


def test_a_greedy_choice_says_that_nothing_is_drawn(opened) -> None:
    made = trace(random_language_model(), "abc", SamplingParams(temperature=0), max_tokens=2)
    tab = opened(made, "#stage=sample")
    assert "nothing is drawn" in tab.locator(".drawn").inner_text()
    assert tab.locator(".line01").count() == 0


def test_a_narrow_bin_is_enlarged(opened) -> None:
    made = trace(random_language_model(), "abc", SamplingParams(seed=1), max_tokens=1)
    narrow = replace(made.steps[0], u=0.501, bin=(0.5, 0.502), margin=0.001)
    tab = opened(replace(made, steps=(narrow,)), "#stage=sample")
    assert tab.locator(".line01").count() == 2
    ends = tab.locator(".line01 .ends").all_inner_texts()
    assert ends[0].split() == ["0", "1"]
    assert ends[1].split() == ["0.489", "0.513"]


def test_unfinished_characters_wait_on_the_page_too(opened) -> None:
    made = trace(chain_language_model(["a", "â", "Ĥ", "¬"]), "a", SamplingParams(temperature=0), max_tokens=3)
    tab = opened(made, "#stage=detokenize")
    assert "Nothing is certain yet" in tab.locator(".panel:visible").inner_text()
    tab.keyboard.press("ArrowRight")
    tab.keyboard.press("ArrowRight")
    assert tab.locator(".panel:visible mark").inner_text() == "€"


def test_the_reason_for_stopping_is_told_at_the_last_token(opened) -> None:
    made = trace(chain_language_model(["a", "b", "<end>"]), "a", SamplingParams(temperature=0), max_tokens=9)
    assert made.steps[-1].id == ID["<end>"]
    tab = opened(made, "#token=2&stage=loop")
    expect(tab.locator(".checks .yes")).to_have_text("End token? yes: stop")
    expect(tab.locator(".next")).to_be_disabled()
