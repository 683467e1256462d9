"""The sampling explorer in a browser, from disk: its numbers are the package's, and anyone can work it."""

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import BrowserContext, Page

from llm_internals import show
from llm_internals.figures.sampling_explorer import NEUTRAL, explorer_data, explorer_logits
from llm_internals.sampling import ORDERS, SamplingParams, account, distribution
from tests.pages.test_interactive import shown, written
from tools.browser import Visit, open_page, visit_page, watched_page

STORED = Path(__file__).parents[2] / "book" / "data" / "sampling_explorer.json"
ENTRIES = json.loads(STORED.read_text(encoding="utf-8"))
DATA = explorer_data(ENTRIES, ORDERS)
DIGIT = 5.001e-4
"""Half of the last of three digits; what rounding adds is far smaller."""
TITLES = {"temperature": "Temperature", "top_k": "Top-k", "top_p": "Top-p", "min_p": "Min-p"}
SETTINGS = [
    (1, 0, 1, 0),
    (0, 0, 1, 0),
    (0, 50, 0.9, 0.05),
    (0.05, 0, 1, 0),
    (0.7, 50, 0.9, 0.05),
    (0.8, 40, 0.95, 0.05),
    (1, 1, 1, 0),
    (1, 0, 0, 0),
    (1, 0, 0.9, 0),
    (1.5, 0, 0.9, 0),
    (1.5, 5000, 0.99, 0.01),
    (2, 0, 1, 0),
    (2, 0, 1, 0.1),
    (2, 200, 0.5, 0.5),
]
"""Temperature, top-k, top-p, min-p."""
READ = """([id, prompt, order, settings]) => {
    const part = document.getElementById(id);
    const set = (name, value, event) => {
        const control = part.querySelector(`[name=${name}]`);
        control.value = value;
        control.dispatchEvent(new Event(event));
    };
    set("prompt", prompt, "change");
    set("order", order, "change");
    for (const [name, stop] of Object.entries(settings)) set(name, String(stop), "input");
    const tables = [...part.querySelectorAll("table")].map((table) => [...table.tBodies[0].rows].map(
        (row) => [...row.cells].map((cell) => cell.textContent)));
    const widths = [...part.querySelectorAll("table")[0].tBodies[0].rows].map(
        (row) => [...row.cells[1].firstChild.children].map((bar) => parseFloat(bar.style.width) / 100));
    return { sentence: part.querySelector("output").textContent, rows: tables[0], steps: tables[1], widths };
}"""


def explorer(**settings: Any) -> show.Output:
    """The part as the page has it."""
    return show.interactive("sampling_explorer", DATA, caption="Move the sliders.", fallback="Numbers.", **settings)


def stops(params: SamplingParams) -> dict[str, int]:
    """Where the sliders stand for these settings."""
    ranks = [1, 2, 3, 5, 10, 20, 40, 50, 100, 200, 500, 1000, 5000, 0]
    return {
        "temperature": round(params.temperature * 20),
        "top_k": ranks.index(params.top_k or 0),
        "top_p": round(params.top_p * 100),
        "min_p": round(params.min_p * 100),
    }


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory, browser: BrowserContext) -> Iterator[Page]:
    """A page with two explorers."""
    with shown(browser, tmp_path_factory.mktemp("explorer"), explorer(), explorer(id="second")) as opened:
        yield opened


def number(text: str) -> float:
    """A number as the page writes it."""
    return float(text.replace(",", ""))


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry["name"])
def test_its_numbers_are_those_of_the_package(page: Page, entry: dict, order: str) -> None:
    logits, names = explorer_logits(entry), entry["tokens"]
    for values in SETTINGS:
        params = SamplingParams(**dict(zip(NEUTRAL, values, strict=True)), order=ORDERS[order])
        seen = page.evaluate(READ, ["second", entry["name"], order, stops(params)])
        records = [record for record in account(logits, params) if record.name in NEUTRAL]
        alone = distribution(logits, SamplingParams(temperature=params.temperature))
        drawn = records[-1].after

        # The steps, in the order of the engine.
        assert [(name, number(left)) for name, _, left, _ in seen["steps"]] == [
            (TITLES[record.name], record.kept.size) for record in records
        ]
        assert [number(removed) for *_, removed in seen["steps"]] == pytest.approx(
            [record.removed_mass for record in records], abs=DIGIT
        )

        # A row for each of the likeliest tokens, and one for the rest.
        parts = [*(slice(rank, rank + 1) for rank in range(len(names))), slice(len(names), None)]
        assert [row[0] for row in seen["rows"]] == [*names, f"{logits.size - len(names):,} others"]
        for (_, _, before, left), bars, part in zip(seen["rows"], seen["widths"], parts, strict=True):
            assert number(before) == pytest.approx(alone[part].sum(), abs=DIGIT)
            assert (left == "removed") == (drawn[part].max() == 0)
            assert left == "removed" or number(left) == pytest.approx(drawn[part].sum(), abs=DIGIT)
            assert sum(bars[:-1]) == pytest.approx(alone[part].sum(), abs=1e-4)
            assert bars[-1] == pytest.approx(drawn[part].sum(), abs=1e-4)

        # The sentence.
        entropy = float(-(drawn[drawn > 0] * np.log(drawn[drawn > 0])).sum())
        removed = 1 - math.prod(1 - record.removed_mass for record in records)
        can, of, gone, nats, _ = (number(word) for word in seen["sentence"].split() if word[0].isdigit())
        assert (can, of) == (records[-1].kept.size, logits.size)
        assert gone == pytest.approx(removed, abs=DIGIT)
        assert nats == pytest.approx(entropy, abs=5.001e-3)


def test_it_begins_where_the_page_says(tmp_path: Path, browser: BrowserContext) -> None:
    data = explorer_data(ENTRIES[1:], {"vllm": ORDERS["vllm"], "mlx-lm": ORDERS["mlx-lm"]}, temperature=1.5, top_k=50)
    part = show.interactive("sampling_explorer", data, caption="c", fallback="Numbers.")
    with watched_page(browser) as (opened, _):
        open_page(opened, written(tmp_path, part))
        assert opened.locator("select").evaluate_all("boxes => boxes.map(box => box.value)") == [
            ENTRIES[1]["name"],
            "vllm",
        ]
        spoken = [slider.get_attribute("aria-valuetext") for slider in opened.get_by_role("slider").all()]
        assert spoken == [f"{setting}, tokens left: 50" for setting in ("1.50", "50", "off", "off")]
        assert opened.get_by_text("Numbers.").count() == 0


def test_the_keyboard_works_it_and_the_result_is_announced(tmp_path: Path, browser: BrowserContext) -> None:
    with watched_page(browser) as (opened, _):
        open_page(opened, written(tmp_path, explorer()))
        result = opened.locator("output")
        assert result.get_attribute("aria-live") == "polite"
        for _ in range(3):
            opened.keyboard.press("Tab")
        assert opened.evaluate("document.activeElement.name") == "temperature"
        opened.keyboard.press("Home")
        assert result.inner_text().startswith("1 of 49,152 tokens can be drawn")
        opened.get_by_label("Top-k").press("ArrowLeft")
        assert opened.get_by_label("Top-k").get_attribute("aria-valuetext") == "5,000, tokens left: 1"
        opened.get_by_role("button", name="Switch all off").press("Enter")
        assert result.inner_text().startswith("49,152 of 49,152 tokens can be drawn; 0.000 of the probability")
        opened.get_by_label("Steps in the order of").select_option("llama.cpp")
        assert opened.locator("table").nth(1).locator("tbody th").all_inner_texts()[-1] == "Temperature"


def test_two_of_them_do_not_touch_each_other(page: Page) -> None:
    before = page.locator("#sampling-explorer output").inner_text()
    page.locator("#second [name=min_p]").fill("50")
    assert page.locator("#sampling-explorer output").inner_text() == before


def test_everyone_can_read_it_in_light_and_dark_and_on_a_phone(tmp_path: Path, browser: BrowserContext) -> None:
    assert visit_page(browser, written(tmp_path, explorer())) == Visit(violations={"light": [], "dark": []})
