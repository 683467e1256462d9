"""The temperature explorer in a browser, from disk: its numbers are those of its file, and anyone can work it."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page

from llm_internals import show
from tests.pages.test_interactive import shown, written
from tools.browser import Visit, open_page, visit_page, watched_page

STORED = Path(__file__).parents[2] / "book" / "data" / "temperature_explorer.json"
DATA = json.loads(STORED.read_text(encoding="utf-8"))
QUESTIONS, TEMPERATURES = DATA["questions"], DATA["temperatures"]
DIGIT = 5.001e-4
"""Half of the last of three digits; what rounding adds is far smaller."""
READ = """([id, question, stop]) => {
    const part = document.getElementById(id);
    const set = (name, value, event) => {
        const control = part.querySelector(`[name=${name}]`);
        control.value = value;
        control.dispatchEvent(new Event(event));
    };
    set("question", question, "change");
    set("temperature", String(stop), "input");
    return {
        sentence: part.querySelector("output").textContent,
        everyone: part.querySelector("p").textContent,
        rows: [...part.querySelector("tbody").rows].map((row) => [...row.cells].map((cell) => cell.textContent)),
        widths: [...part.querySelector("tbody").rows].map(
            (row) => parseFloat(row.cells[1].firstChild.lastChild.style.width) / 100),
        dots: [...part.querySelectorAll("circle")].map((dot) => [Number(dot.getAttribute("cx")),
            Number(dot.getAttribute("cy"))]),
        label: part.querySelector("svg").getAttribute("aria-label"),
    };
}"""


def explorer(**settings: str) -> show.Output:
    """The part as the page has it."""
    return show.interactive("temperature_explorer", DATA, caption="Turn it.", fallback="Curves.", **settings)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory, browser: BrowserContext) -> Iterator[Page]:
    """A page with two explorers."""
    with shown(browser, tmp_path_factory.mktemp("explorer"), explorer(), explorer(id="second")) as opened:
        yield opened


@pytest.mark.parametrize("entry", QUESTIONS, ids=lambda entry: entry["prompt"])
def test_its_numbers_are_those_of_the_file_at_every_temperature(page: Page, entry: dict) -> None:
    right = entry["right"]
    for stop, t in enumerate(TEMPERATURES):
        seen = page.evaluate(READ, ["second", entry["prompt"], stop])
        probs = [row[stop] for row in entry["probs"]]
        others = max(0.0, 1 - sum(probs))

        names = [f"{name} ✓" if token == right else name for token, name in enumerate(entry["tokens"])]
        assert [row[0] for row in seen["rows"]] == [*names, "all others"]
        assert [float(row[-1]) for row in seen["rows"]] == pytest.approx([*probs, others], abs=DIGIT)
        assert seen["widths"] == pytest.approx([*probs, others], abs=1e-4)

        assert seen["sentence"].startswith(f"At T = {t:.2f} the model says ")
        if t > 0:
            assert float(re.search(r"with probability (\d\.\d{3})\.", seen["sentence"])[1]) == pytest.approx(
                probs[right], abs=DIGIT
            )
        sampled, sure = (float(number) for number in re.findall(r"\d\.\d{3}", seen["everyone"]))
        assert (sampled, sure) == pytest.approx(
            (DATA["all"]["sampled"][stop], DATA["all"]["confidence"][stop]), abs=DIGIT
        )
        assert "right in 168, at every temperature" in seen["everyone"]

        height = {y: p for (_, y), p in zip(seen["dots"], [probs[right], probs[0]], strict=False)}
        assert all(y == pytest.approx(12 + (1 - p) * 184, abs=0.06) for y, p in height.items())
        assert len(seen["dots"]) == (1 if right == 0 else 2)


@pytest.mark.parametrize("entry", QUESTIONS, ids=lambda entry: entry["prompt"])
def test_the_verdict_says_whether_greedy_is_right_and_where_the_peak_is(page: Page, entry: dict) -> None:
    seen = page.evaluate(READ, ["second", entry["prompt"], 20])
    curve = entry["probs"][entry["right"]]
    if entry["place"] == 1:
        assert "It is right, and first at every temperature. One step down makes it likelier." in seen["sentence"]
        assert "(wrong)" not in seen["label"]
        return
    assert "so greedy decoding is wrong" in seen["sentence"]
    best = TEMPERATURES[curve.index(max(curve))]
    assert f"It is likeliest at T = {best:.2f}." in seen["sentence"]
    gain = curve[19] - curve[20]
    verdict = "likelier" if gain > 0 else "less likely"
    assert abs(gain) < 5e-4 or f"One step down makes it {verdict}." in seen["sentence"]
    assert f"{entry['tokens'][0]} (wrong)" in seen["label"]


def test_at_temperature_0_it_says_the_likeliest_token_for_certain(page: Page) -> None:
    seen = page.evaluate(READ, ["second", "The capital of Turkey is", 0])
    assert "the model says ␣Istanbul for certain" in seen["sentence"]
    assert [row[-1] for row in seen["rows"]][:2] == ["1.000", "0.000"]


def test_the_keyboard_works_it_and_the_result_is_announced(tmp_path: Path, browser: BrowserContext) -> None:
    with watched_page(browser) as (opened, _):
        open_page(opened, written(tmp_path, explorer()))
        result = opened.locator("output")
        assert result.get_attribute("aria-live") == "polite"
        assert result.inner_text().startswith("At T = 1.00 the model says ␣Ank with probability")
        for _ in range(2):
            opened.keyboard.press("Tab")
        assert opened.evaluate("document.activeElement.name") == "temperature"
        opened.keyboard.press("ArrowLeft")
        assert result.inner_text().startswith("At T = 0.95")
        assert opened.get_by_role("slider").get_attribute("aria-valuetext").startswith("0.95, right answer 0.")
        opened.keyboard.press("Home")
        assert result.inner_text().startswith("At T = 0.00")
        opened.get_by_label("The question").select_option("2 + 7 = ")
        assert "The right answer is 9, third" in result.inner_text()
        assert opened.locator("optgroup").count() == 3
        assert opened.get_by_text("Curves.").count() == 0


def test_two_of_them_do_not_touch_each_other(page: Page) -> None:
    before = page.locator("#temperature-explorer output").inner_text()
    page.locator("#second [name=temperature]").fill("3")
    assert page.locator("#temperature-explorer output").inner_text() == before


def test_everyone_can_read_it_in_light_and_dark_and_on_a_phone(tmp_path: Path, browser: BrowserContext) -> None:
    assert visit_page(browser, written(tmp_path, explorer())) == Visit(violations={"light": [], "dark": []})
