"""Ids beside other engines on much text: llama.cpp and tokenizers for SmolLM2, tiktoken for cl100k, o200k and Tekken.

``python -m benchmarks.peers_tokenizer FOLDER ...`` reads every text below the folders, takes some minutes, and writes
its counts to ``benchmarks/results/peers_tokenizer.json``. It needs llama.cpp's Python package, which
``benchmarks/requirements.txt`` adds.

Text in many languages: Debian's translated manual pages (``apt-get download manpages-ja manpages-ru ...``, then
``dpkg-deb -x``) and message catalogues (``.po``).

A text is left out, and counted, where engines differ by design: if it has characters that Unicode 14 doesn't assign,
or a byte that SmolLM2's vocabulary lacks.
"""

import argparse
import gzip
import json
import platform
import random
import sys
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import regex
from llama_cpp import Llama

from llm_internals.detokenizer import StreamingDetokenizer
from llm_internals.gguf import read_gguf
from llm_internals.model_metadata import read_tokenizer
from llm_internals.tokenizer import Tokenizer
from llm_internals.vocabularies import cl100k_base, o200k_base, tekken
from llm_internals.weights_file import find_weights
from tests.reference_streams import cut, of_pieces, random_stream, stream
from tests.reference_tokenizers import hugging_face_tokenizer, random_texts, tiktoken_of, unicode14

RESULTS = Path(__file__).parent / "results" / "peers_tokenizer.json"
PEERS = ("tokenizers", "tiktoken", "llama-cpp-python", "regex")
N_FUZZED = 1_000_000
N_FUZZED_OTHERS = 200_000
N_STREAMS = 200_000
LETTER = regex.compile(r"\p{L}")
LATIN_LETTER = regex.compile(r"\p{Latin}")

Encode = Callable[[str], list[int]]


def main() -> None:
    """Compare, write the counts, and fail if there is a difference."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folders", nargs="+", type=Path, help="every .gz, .po, .txt, .py, .rst and .md below is read")
    folders = parser.parse_args().folders

    file = read_gguf(find_weights(None))
    tokenizer = read_tokenizer(file)
    reference = hugging_face_tokenizer(file.metadata["tokenizer.ggml.tokens"], file.metadata["tokenizer.ggml.merges"])
    peers: dict[str, Encode] = {"tokenizers": lambda text: reference.encode(text).ids, "llama.cpp": llama_cpp()}

    counts: dict[str, dict[str, int]] = {"documents": compare_documents(tokenizer, peers, folders)}
    fuzzed = random_texts(seed=100, count=N_FUZZED, encodable=lambda text: is_encodable(tokenizer, text))
    counts["fuzzed strings"] = compare(fuzzed, tokenizer.encode, peers)
    for vocabulary in (cl100k_base(), o200k_base(), tekken()):
        theirs = {"tiktoken": tiktoken_of(vocabulary.tokenizer).encode_ordinary}
        fuzzed = random_texts(seed=101, count=N_FUZZED_OTHERS, encodable=lambda _: True)
        documents = (text for text in read_texts(folders) if text is not None)
        counts[f"{vocabulary.name}, fuzzed strings"] = compare(fuzzed, vocabulary.tokenizer.encode, theirs)
        counts[f"{vocabulary.name}, documents"] = compare(documents, vocabulary.tokenizer.encode, theirs)
    counts["random streams"] = compare_streams()
    write(counts)


def llama_cpp() -> Encode:
    """Return llama.cpp's tokenizer, of the same weights file."""
    model = Llama(str(find_weights(None)), vocab_only=True, verbose=False)
    return lambda text: model.tokenize(text.encode(), add_bos=False, special=False)


def compare_documents(tokenizer: Tokenizer, peers: dict[str, Encode], folders: list[Path]) -> dict[str, int]:
    """Compare on every text below the folders; how much of it is mostly not in Latin letters is counted too."""
    left_out = {"no UTF-8": 0, "not in Unicode 14": 0, "a byte that SmolLM2 lacks": 0}
    assigned = frozenset(unicode14())
    bytes_not_latin = 0

    def kept() -> Iterator[str]:
        nonlocal bytes_not_latin
        for text in read_texts(folders):
            if text is None:
                left_out["no UTF-8"] += 1
            elif not assigned.issuperset(text):
                left_out["not in Unicode 14"] += 1
            elif not is_encodable(tokenizer, text):
                left_out["a byte that SmolLM2 lacks"] += 1
            else:
                bytes_not_latin += len(text.encode()) if is_mostly_not_latin(text) else 0
                yield text

    counts = compare(kept(), tokenizer.encode, peers)
    return counts | {"bytes mostly not Latin": bytes_not_latin} | {f"left out: {why}": n for why, n in left_out.items()}


def compare(texts: Iterable[str], ours: Encode, peers: dict[str, Encode]) -> dict[str, int]:
    """Count texts, bytes, ids and, for each peer, the texts whose ids differ."""
    counts = {"texts": 0, "bytes": 0, "ids": 0} | {f"differences to {name}": 0 for name in peers}
    for text in texts:
        ids = ours(text)
        counts["texts"] += 1
        counts["bytes"] += len(text.encode())
        counts["ids"] += len(ids)
        for name, theirs in peers.items():
            if theirs(text) != ids:
                counts[f"differences to {name}"] += 1
                print(f"differs from {name}: {text[:200]!r}", file=sys.stderr)
    print(counts)
    return counts


def compare_streams() -> dict[str, int]:
    """Count random streams of tokens whose pieces don't join to the decoded whole, cut at its first stop string."""
    rng = random.Random(100)
    differences = 0
    for _ in range(N_STREAMS):
        pieces, stops = random_stream(rng)
        tokenizer, ids = of_pieces(pieces)
        detokenizer = StreamingDetokenizer(tokenizer, stops)
        joined = "".join(stream(detokenizer, ids))
        differences += (joined, detokenizer.stopped) != cut(tokenizer.decode(ids), stops)
    return {"streams": N_STREAMS, "differences to decode, cut": differences}


def read_texts(folders: list[Path]) -> Iterator[str | None]:
    """Yield the texts below the folders in the order of their paths, None for one that is no UTF-8."""
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            if path.suffix in {".gz", ".po", ".txt", ".py", ".rst", ".md"} and path.is_file() and not path.is_symlink():
                data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
                try:
                    yield data.decode()
                except UnicodeDecodeError:
                    yield None


def is_encodable(tokenizer: Tokenizer, text: str) -> bool:
    """Tell whether the vocabulary has all bytes of a text."""
    return not set(tokenizer.missing_bytes) & set(text.encode())


def is_mostly_not_latin(text: str) -> bool:
    """Tell whether most letters of a text belong to another script."""
    return 2 * len(LATIN_LETTER.findall(text)) < len(LETTER.findall(text))


def write(counts: dict[str, dict[str, int]]) -> None:
    """Write the counts with date and versions, and exit with an error if there was a difference."""
    result = {
        "date": datetime.now(UTC).date().isoformat(),
        "versions": {"Python": platform.python_version()} | {name: version(name) for name in PEERS},
        "counts": counts,
    }
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    differences = sum(n for part in counts.values() for name, n in part.items() if name.startswith("differences"))
    sys.exit(f"{differences} differences" if differences else 0)


if __name__ == "__main__":
    main()
