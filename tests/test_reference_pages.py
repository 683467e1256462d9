"""The pages without code cells: what they say of the model and of the book is what the model and the book are."""

import re
from pathlib import Path

import torch
import yaml

from llm_internals import logits, model
from llm_internals.checkpoint import LanguageModel
from llm_internals.figures.pipeline import STAGES
from llm_internals.gguf import read_gguf
from llm_internals.weights_file import find_weights

ROOT = Path(__file__).parent.parent


def page(name: str) -> str:
    """The text of a page."""
    return (ROOT / "book" / f"{name}.md").read_text(encoding="utf-8")


def rows(text: str, first_header: str) -> list[list[str]]:
    """The rows of the Markdown table whose first column has this header, without code marks."""
    table = text[text.index(f"| {first_header} |") :].split("\n\n")[0].replace("`", "")
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]


def chapters() -> list[str]:
    """The notebooks in the table of contents."""
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
    files = [entry["file"] for part in toc["parts"] for entry in part["chapters"]]
    return [file.removeprefix("book/") for file in files if (ROOT / f"{file}.ipynb").exists()]


def test_the_sizes_in_the_notation_are_those_of_the_model(lm: LanguageModel) -> None:
    config = lm.config
    sizes = {row[0]: row[2] for row in rows(page("notation"), "axis")}
    assert sizes == {
        "seq": "any",
        "kv_seq": f"up to {config.max_position_embeddings:,}",
        "vocab_size": f"{config.vocab_size:,}",
        "hidden_size": str(config.hidden_size),
        "layers": str(config.num_hidden_layers),
        "heads": str(config.num_attention_heads),
        "kv_heads": str(config.num_key_value_heads),
        "head_dim": str(config.head_dim),
        "intermediate_size": f"{config.intermediate_size:,}",
        "batch": "1",
    }


def test_the_names_of_tensors_in_the_notation_are_those_in_the_file() -> None:
    in_file = {re.sub(r"\d+", "N", name).removesuffix(".weight") for name in read_gguf(find_weights()).tensors}
    named = {row[1].split(" ")[0] for row in rows(page("notation"), "in this book and in Hugging Face")}
    assert named == in_file | {"output"}


def test_the_introduction_says_how_large_the_model_is(lm: LanguageModel) -> None:
    path = find_weights()
    parameters = sum(torch.Size(tensor.shape).numel() for tensor in read_gguf(path).tensors.values())
    text = page("intro")
    assert f"{parameters:,} parameters in {lm.config.num_hidden_layers} blocks" in text
    assert f"{lm.config.vocab_size:,} pieces of text" in text
    assert f"{path.stat().st_size / 1e6:.0f} MB" in text


def test_the_words_that_the_introduction_gives_to_go_on_with_lead_to_sydney(lm: LanguageModel) -> None:
    ids = torch.tensor(lm.tokenizer.encode("The capital of Australia is"))
    scores = logits.lm_head(model.forward(ids, lm.weights)[-1:], lm.weights)[0]
    assert lm.tokenizer.decode([int(scores.argmax())]) == " Sydney"


def test_the_introduction_links_to_every_chapter_and_to_no_other() -> None:
    linked = set(re.findall(r"\]\((\w+)\.ipynb\)", page("intro")))
    assert linked == set(chapters())


def test_a_chapter_of_a_stage_has_the_name_under_which_the_strip_links_to_it() -> None:
    numbered = [name for name in chapters() if re.match(r"0[1-7]_", name)]
    assert set(numbered) <= {stage.chapter for stage in STAGES}


def test_the_entries_of_the_glossary_are_in_order_and_no_term_has_two() -> None:
    body = page("glossary").split("```{glossary}\n")[1].removesuffix("```\n")
    entries = [
        [line for line in entry.splitlines() if not line.startswith(" ")] for entry in body.strip().split("\n\n")
    ]
    terms = [term.casefold() for entry in entries for term in entry]
    assert len(terms) == len(set(terms))
    assert [entry[0] for entry in entries] == sorted((entry[0] for entry in entries), key=str.casefold)
