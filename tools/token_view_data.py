"""Write the script that carries SmolLM2's vocabulary to the token view of chapter 01.

    python -m tools.token_view_data

Nothing in it is measured: it changes only with the weights file. ``tests/test_token_view.py`` makes it anew and
compares.
"""

from pathlib import Path

from llm_internals.checkpoint import load_checkpoint
from llm_internals.figures.token_view import token_view_script, token_view_vocabulary
from llm_internals.tokenizer import Tokenizer

PATH = Path(__file__).resolve().parent.parent / "book" / "_static" / "smollm2_merges.js"
ABOUT = "The vocabulary of SmolLM2-135M-Instruct (Apache-2.0), written by tools/token_view_data.py."


def script(tokenizer: Tokenizer) -> str:
    """The text of the file."""
    id_of = {tokenizer.token_bytes(id): id for id in range(tokenizer.vocab_size)}
    vocabulary = token_view_vocabulary(
        [id_of.get(bytes([byte]), -1) for byte in range(256)],
        list(tokenizer.merges.ranks),
        tokenizer.merges.products,
        tokenizer.split.pattern,
    )
    return token_view_script(vocabulary, ABOUT)


def main() -> None:
    """Write the file."""
    PATH.write_text(script(load_checkpoint().tokenizer), encoding="utf-8", newline="\n")
    print(f"{PATH.name}: written")


if __name__ == "__main__":
    main()
