"""The tilt explorer in a browser, from disk: its numbers are the package's, and anyone can work it."""

import json
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch
from playwright.sync_api import BrowserContext, Page

from llm_internals import show
from llm_internals.figures.sampling_explorer import explorer_logits
from llm_internals.tilt import kl_divergence, log_partition, objective, tilt
from tests.pages.test_interactive import shown, written
from tools.browser import Visit, open_page, visit_page, watched_page

STORED = Path(__file__).parents[2] / "book" / "data" / "tilt_explorer.json"
ENTRIES = json.loads(STORED.read_text(encoding="utf-8"))
DATA = {
    "prompts": ENTRIES,
    "start": {"prompt": ENTRIES[0]["name"], "token": "␣Canberra", "reward": 1, "beta": 0.25},
}
DIGIT = 5.001e-4
"""Half of the last of three digits; what rounding adds is far smaller."""
REWARDS = [value / 10 for value in range(-10, 21)]
BETAS = [0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.75, 1, 1.5, 2, 3, 5, 10]
GRID = [*product((0, 1, 9), (-1.0, 0.0, 0.3, 2.0), (0.02, 0.25, 1.0, 10.0))]
"""Place of the rewarded token, reward, beta."""
READ = """([id, prompt, token, settings]) => {
    const part = document.getElementById(id);
    const set = (name, value, event) => {
        const control = part.querySelector(`[name=${name}]`);
        control.value = value;
        control.dispatchEvent(new Event(event));
    };
    set("prompt", prompt, "change");
    set("token", token, "change");
    for (const [name, stop] of Object.entries(settings)) set(name, String(stop), "input");
    const tables = [...part.querySelectorAll("table")].map((table) => [...table.tBodies[0].rows].map(
        (row) => [...row.cells].map((cell) => cell.textContent)));
    const widths = [...part.querySelectorAll("table")[0].tBodies[0].rows].map(
        (row) => [...row.cells[1].firstChild.children].map((bar) => parseFloat(bar.style.width) / 100));
    return { sentence: part.querySelector("output").textContent, rows: tables[0], amounts: tables[1], widths };
}"""


def explorer(**settings: Any) -> show.Output:
    """The part as the page has it."""
    return show.interactive("tilt_explorer", DATA, caption="Move the sliders.", fallback="Numbers.", **settings)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory, browser: BrowserContext) -> Iterator[Page]:
    """A page with two explorers."""
    with shown(browser, tmp_path_factory.mktemp("explorer"), explorer(), explorer(id="second")) as opened:
        yield opened


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry["name"])
def test_its_numbers_are_those_of_the_package(page: Page, entry: dict) -> None:
    before, names = torch.tensor(explorer_logits(entry)).log_softmax(dim=0), entry["tokens"]
    for place, value, beta in GRID:
        stops = {"reward": REWARDS.index(value), "beta": BETAS.index(beta)}
        seen = page.evaluate(READ, ["second", entry["name"], names[place], stops])
        reward = torch.zeros_like(before)
        reward[place] = value
        after = tilt(before, reward, beta)
        was, now = before.exp(), after.exp()

        parts = [*(slice(rank, rank + 1) for rank in range(len(names))), slice(len(names), None)]
        assert [row[0] for row in seen["rows"]] == [*names, f"{len(before) - len(names):,} others"]
        for (_, _, model, best), bars, part in zip(seen["rows"], seen["widths"], parts, strict=True):
            assert float(model) == pytest.approx(float(was[part].sum()), abs=DIGIT)
            assert float(best) == pytest.approx(float(now[part].sum()), abs=DIGIT)
            assert bars[0] == pytest.approx(float(was[part].sum()), abs=1e-4)
            assert bars[-1] == pytest.approx(float(now[part].sum()), abs=1e-4)

        expected, distance, worth, most, entropy = ([float(x) for x in row[1:] if x] for row in seen["amounts"])
        assert expected == pytest.approx([float((p * reward).sum()) for p in (was, now)], abs=DIGIT)
        assert distance == pytest.approx([0, float(kl_divergence(after, before))], abs=DIGIT)
        assert worth == pytest.approx([float(objective(p, before, reward, beta)) for p in (before, after)], abs=DIGIT)
        assert most == pytest.approx([beta * float(log_partition(before, reward, beta))], abs=DIGIT)
        assert entropy == pytest.approx([-float((p.exp() * p).sum()) for p in (before, after)], abs=DIGIT)
        assert seen["amounts"][2][2] == seen["amounts"][3][2], "J of the best is beta ln Z"

        assert f"adds {value / beta:.2f} to the logit of {names[place]}:" in seen["sentence"]
        assert seen["sentence"].endswith(f"from {seen['rows'][place][2]} to {seen['rows'][place][3]}.")


def test_it_begins_where_the_page_says(page: Page) -> None:
    part = page.locator("#tilt-explorer")
    assert part.locator("select").evaluate_all("boxes => boxes.map(box => box.value)") == [
        ENTRIES[0]["name"],
        "␣Canberra",
    ]
    spoken = [slider.get_attribute("aria-valuetext") for slider in part.get_by_role("slider").all()]
    assert spoken == ["1.0, ␣Canberra now 0.966", "0.25, ␣Canberra now 0.966"]
    assert part.get_by_text("Numbers.").count() == 0


def test_another_text_brings_its_own_tokens_and_rewards_its_likeliest(page: Page) -> None:
    page.locator("#second [name=prompt]").select_option(ENTRIES[1]["name"])
    box = page.locator("#second [name=token]")
    assert box.locator("option").all_inner_texts() == ENTRIES[1]["tokens"]
    assert box.input_value() == ENTRIES[1]["tokens"][0]


def test_the_keyboard_works_it_and_the_result_is_announced(tmp_path: Path, browser: BrowserContext) -> None:
    with watched_page(browser) as (opened, _):
        open_page(opened, written(tmp_path, explorer()))
        result = opened.locator("output")
        assert result.get_attribute("aria-live") == "polite"
        for _ in range(3):
            opened.keyboard.press("Tab")
        assert opened.evaluate("document.activeElement.name") == "reward"
        opened.keyboard.press("ArrowRight")
        assert result.inner_text().startswith("A reward of 1.1 at a price of 0.25 adds 4.40 to the logit of ␣Canberra")
        opened.get_by_label("Price of change β").press("End")
        assert result.inner_text().startswith("A reward of 1.1 at a price of 10.0 adds 0.11")


def test_two_of_them_do_not_touch_each_other(page: Page) -> None:
    before = page.locator("#tilt-explorer output").inner_text()
    page.locator("#second [name=reward]").fill("0")
    assert page.locator("#tilt-explorer output").inner_text() == before


def test_everyone_can_read_it_in_light_and_dark_and_on_a_phone(tmp_path: Path, browser: BrowserContext) -> None:
    assert visit_page(browser, written(tmp_path, explorer())) == Visit(violations={"light": [], "dark": []})
