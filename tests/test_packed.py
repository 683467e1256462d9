"""`llm_internals.packed`: products of matrices that stay in 4 bits, and the real model held in them."""

import subprocess
import sys
import warnings
from pathlib import Path

import gguf
import numpy as np
import pytest
import torch
from gguf_models import CONFIG, metadata_of, tensors_of, write_gguf
from hypothesis import given
from hypothesis import strategies as st
from tiny_model import random_weights
from torch import Tensor

from llm_internals import packed
from llm_internals.chat import encode_chat
from llm_internals.checkpoint import load_checkpoint
from llm_internals.dequantize import KINDS, dequantize
from llm_internals.generate import generate
from llm_internals.gguf import GGUFError, read_gguf
from llm_internals.kv_cache import KVCache
from llm_internals.linear import PackedMatrix, linear, rows
from llm_internals.logits import lm_head
from llm_internals.model import forward
from llm_internals.packed import EightBitMatrix, FourBitMatrix, TokenMatrix, pack
from llm_internals.sampling import SamplingParams
from llm_internals.weights_file import find_weights

BFLOAT16 = 2**-8
"""x, scale, zero and result are each rounded to eight bits, by 2**-9 at most: four of them, partly averaged out in the
sum, stay below 2**-8 of the sum of the absolute terms."""
KL_LIMIT = 2e-3
"""In nats a position, as the mean over a real text; 9e-4 was measured."""
RESIDENT_MEGABYTES = 450

README = Path(__file__).parents[1] / "README.md"


def random_blocks(kind: str, n_rows: int, blocks: int, seed: int = 0) -> np.ndarray:
    """Blocks of normal numbers, as the gguf package quantises them."""
    values = np.random.default_rng(seed).normal(size=(n_rows, 32 * blocks)).astype(np.float32)
    return gguf.quants.quantize(values, gguf.GGMLQuantizationType[kind])


def blocks_of(kind: str, q: np.ndarray, d: float, m: float = 0.0) -> np.ndarray:
    """One block a row with these integers."""
    blocks = np.zeros((len(q), 1), dtype=KINDS[kind].layout)
    blocks["d"] = d
    if kind == "Q8_0":
        blocks["q"][:, 0] = q
    else:
        blocks["q"][:, 0] = q[:, :16] | q[:, 16:] << 4
    if kind == "Q4_1":
        blocks["m"] = m
    return blocks.view(np.uint8)


@pytest.fixture(scope="module")
def packed_lm():
    with warnings.catch_warnings():  # on a processor without AVX2 it says that it is slow
        warnings.simplefilter("ignore")
        return load_checkpoint(weights="packed")


# One matrix


@pytest.mark.parametrize(
    ("kind", "q", "d", "m"),
    [
        ("Q4_1", np.arange(16 * 32).reshape(16, 32) % 16, 0.5, -3.0),
        ("Q4_0", np.arange(16 * 32).reshape(16, 32) % 16, 0.25, 0.0),
        ("Q8_0", np.arange(-256, 256).reshape(16, 32).clip(-128, 127), 0.5, 0.0),
    ],
)
def test_a_product_whose_numbers_bfloat16_holds_is_exact(kind, q, d, m):
    """One input at a time, times two: every weight comes out as the block has it (Q8_0 in two parts, then summed)."""
    blocks = blocks_of(kind, q.astype(np.int8 if kind == "Q8_0" else np.uint8), d, m)
    expected = torch.from_numpy(dequantize(blocks, kind))
    assert expected.unique().numel() > 10
    assert torch.equal(pack(blocks, kind).product(2 * torch.eye(32)), 2 * expected.t())


@pytest.mark.parametrize("kind", packed.PACKERS)
@given(seed=st.integers(0, 1000), n_rows=st.integers(1, 6), blocks=st.integers(1, 5), seq=st.integers(1, 9))
def test_a_product_is_the_dense_one_to_the_digits_of_bfloat16(kind, seed, n_rows, blocks, seq):
    raw = random_blocks(kind, 16 * n_rows, blocks, seed)
    matrix, dense = pack(raw, kind), torch.from_numpy(dequantize(raw, kind)).t()
    x = torch.randn(seq, 32 * blocks, generator=torch.Generator().manual_seed(seed))
    sizes = x.abs() @ dense.abs() + 32 * x.abs().sum(1, keepdim=True) * dense.abs().amax() * BFLOAT16
    assert matrix.shape == tuple(dense.shape)
    assert ((linear(x, matrix) - x @ dense).abs() <= BFLOAT16 * sizes).all()


def test_packing_some_rows_at_a_time_gives_what_the_whole_gives(monkeypatch):
    raw = random_blocks("Q4_1", 320, 2)
    whole = pack(raw, "Q4_1")
    monkeypatch.setattr(packed, "ROWS_AT_ONCE", 64)
    parts = pack(raw, "Q4_1")
    assert torch.equal(parts.nibbles, whole.nibbles)
    x = torch.randn(2, 64)
    assert torch.equal(parts.product(x), whole.product(x))


@pytest.mark.parametrize("batch", [(), (1,), (2, 3)])
def test_a_product_takes_any_leading_axes_and_keeps_the_dtype(batch):
    matrix = pack(random_blocks("Q4_1", 32, 2), "Q4_1")
    x = torch.randn(*batch, 64)
    assert matrix.product(x).shape == (*batch, 32)
    assert torch.equal(matrix.product(x).reshape(-1, 32), matrix.product(x.reshape(-1, 64)))
    assert matrix.product(x.double()).dtype == torch.float64


@pytest.mark.parametrize("kind", packed.PACKERS)
def test_rows_of_a_packed_matrix_are_its_products_with_unit_vectors(kind):
    matrix = pack(random_blocks(kind, 32, 1), kind)
    ids = torch.tensor([5, 0, 31, 5])
    assert isinstance(matrix, PackedMatrix)
    assert torch.equal(rows(matrix, ids), matrix.product(torch.eye(32)).t()[ids])


@pytest.mark.parametrize("kind", packed.PACKERS)
def test_rows_of_the_matrix_of_tokens_are_those_of_the_file_bit_by_bit(kind):
    raw = random_blocks(kind, 48, 2)
    matrix = TokenMatrix(pack(raw, kind), raw, kind)
    ids = torch.tensor([47, 0, 0, 13])
    assert rows(matrix, ids).numpy().tolist() == dequantize(raw, kind)[ids.numpy()].tolist()
    assert matrix.nbytes == matrix.packed.nbytes + raw.nbytes


def test_a_weight_takes_five_bits_in_four_and_ten_in_eight():
    assert pack(random_blocks("Q4_1", 64, 3), "Q4_1").nbytes * 8 == 5 * 64 * 96
    assert pack(random_blocks("Q8_0", 64, 3), "Q8_0").nbytes * 8 == 10 * 64 * 96


def test_what_cannot_be_packed_is_refused():
    with pytest.raises(ValueError, match="kind must be one of Q4_0, Q4_1, Q8_0, but is 'F16'"):
        pack(np.zeros((16, 64), np.uint8), "F16")
    with pytest.raises(ValueError, match="must be a multiple of 16, but is 24"):
        pack(random_blocks("Q4_1", 24, 1), "Q4_1")
    for kind, m in (("Q4_1", float("inf")), ("Q8_0", 0.0), ("Q4_0", 0.0)):
        broken = blocks_of(kind, np.zeros((16, 32), np.uint8), 1.0 if kind == "Q4_1" else float("nan"), m)
        with pytest.raises(ValueError, match="NaN or infinite"):
            pack(broken, kind)


def test_a_gradient_through_packed_weights_is_refused_with_what_to_do():
    matrix = pack(random_blocks("Q4_1", 32, 1), "Q4_1")
    x = torch.randn(1, 32, requires_grad=True)
    with pytest.raises(RuntimeError, match='load the model with weights="float32"'):
        matrix.product(x)
    with torch.no_grad():
        assert matrix.product(x).shape == (1, 32)


# A file


@pytest.fixture
def tiny_file(tmp_path):
    """A function: the kind of the matrices -> the path of a file with a tiny model of random weights."""

    def write(kind: str, change=lambda tensors: tensors) -> Path:
        tensors = change(tensors_of(random_weights(CONFIG)))
        return write_gguf(tmp_path / f"{kind}.gguf", metadata_of(CONFIG), tensors, kind)

    return write


@pytest.mark.filterwarnings("ignore:products with 4-bit weights are slow")
@pytest.mark.parametrize("kind", packed.PACKERS)
def test_each_matrix_of_a_file_is_packed_in_the_order_that_float32_has(tiny_file, kind):
    """Queries and keys come in another order of rows; norms stay float32."""
    path = tiny_file(kind)
    ours, plain = load_checkpoint(path, weights="packed").weights, load_checkpoint(path).weights
    for name in ("q_proj", "k_proj", "v_proj", "o_proj"):
        same_matrix(getattr(ours.layers[1].self_attn, name), getattr(plain.layers[1].self_attn, name))
    for name in ("gate_proj", "up_proj", "down_proj"):
        same_matrix(getattr(ours.layers[1].mlp, name), getattr(plain.layers[1].mlp, name))
    assert torch.equal(ours.layers[0].input_layernorm, plain.layers[0].input_layernorm)
    ids = torch.tensor([3, 1, 4])
    assert torch.equal(rows(ours.embed_tokens, ids), rows(plain.embed_tokens, ids))


def same_matrix(ours: FourBitMatrix | EightBitMatrix, plain: Tensor) -> None:
    assert isinstance(ours, FourBitMatrix | EightBitMatrix)
    rebuilt = ours.product(torch.eye(plain.shape[0]))
    assert (rebuilt - plain).abs().max() <= 4 * BFLOAT16 * plain.abs().max()


@pytest.mark.filterwarnings("ignore:products with 4-bit weights are slow")
def test_what_the_operators_do_not_take_is_held_in_float32(tiny_file):
    """Matrices of float16."""
    lm = load_checkpoint(tiny_file("F16"), weights="packed")
    assert isinstance(lm.weights.layers[0].mlp.up_proj, Tensor)
    assert isinstance(lm.weights.embed_tokens, Tensor)


@pytest.mark.filterwarnings("ignore:products with 4-bit weights are slow")
def test_a_scale_that_is_no_number_is_an_error_that_names_the_tensor(tiny_file):
    path = tiny_file("Q4_1")
    tensor = read_gguf(path).tensors["blk.1.ffn_up.weight"]
    with open(path, "r+b") as file:
        file.seek(tensor.offset)
        file.write(np.float16("nan").tobytes())
    with pytest.raises(GGUFError, match=r"'blk.1.ffn_up.weight': a scale is NaN or infinite"):
        load_checkpoint(path, weights="packed")


def test_without_the_operators_the_weights_are_float32_and_a_warning_says_so(tiny_file, monkeypatch):
    monkeypatch.setattr(packed, "KERNELS", ("_convert_weight_to_int4pack_for_cpu", "_no_such_operator"))
    with pytest.warns(UserWarning, match=r"held in float32 instead.*requirements.txt names a version"):
        lm = load_checkpoint(tiny_file("Q4_1"), weights="packed")
    assert isinstance(lm.weights.layers[0].mlp.up_proj, Tensor)


@pytest.mark.parametrize(("capability", "slow"), [("DEFAULT", True), ("AVX2", False), ("AVX512", False)])
def test_where_the_operators_are_slow_it_says_so_and_works(tiny_file, monkeypatch, capability, slow):
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: capability)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        lm = load_checkpoint(tiny_file("Q4_1"), weights="packed")
    assert [str(w.message).startswith("products with 4-bit weights are slow") for w in caught] == [True] * slow
    assert isinstance(lm.weights.layers[0].mlp.up_proj, FourBitMatrix)
    assert lm_head(forward(torch.tensor([1, 2]), lm.weights), lm.weights).isfinite().all()


# The real model


def test_the_distributions_of_the_packed_model_are_near_those_of_float32(lm, packed_lm):
    """On a real text, whole; and token by token through the cache, which the operators round in the same way."""
    ids = torch.tensor(lm.tokenizer.encode(README.read_text(encoding="utf-8"))[:96])
    with torch.inference_mode():
        exact = lm_head(forward(ids, lm.weights), lm.weights).double().log_softmax(-1)
        whole = lm_head(forward(ids, packed_lm.weights), packed_lm.weights).double().log_softmax(-1)
        cache = KVCache.empty(lm.config, len(ids))
        cached = torch.cat([forward(part, packed_lm.weights, cache) for part in ids.split([64, *[1] * 32])])
        cached = lm_head(cached, packed_lm.weights).double().log_softmax(-1)
    for logprobs in (whole, cached):
        divergence = (exact.exp() * (exact - logprobs)).sum(-1)
        assert 0 < divergence.mean() < KL_LIMIT
        assert (logprobs.argmax(-1) == exact.argmax(-1)).float().mean() > 0.9


def test_the_packed_model_answers_the_question_of_the_book(packed_lm):
    ids = encode_chat(packed_lm.tokenizer, [{"role": "user", "content": "What is the capital of Australia?"}])
    steps = list(generate(packed_lm, ids, SamplingParams(temperature=0), max_tokens=12))
    assert "".join(step.piece for step in steps) == "The capital of Australia is Canberra."


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's own record of memory is read from /proc")
def test_the_packed_model_with_python_and_torch_takes_less_than_450_megabytes():
    """After loading and a few tokens; the peak while loading stays below it too."""
    program = (
        "import warnings; warnings.simplefilter('ignore')\n"
        "import llm_internals; lm = llm_internals.load_checkpoint(weights='packed')\n"
        "from llm_internals.generate import generate; from llm_internals.sampling import SamplingParams\n"
        "list(generate(lm, lm.tokenizer.encode('The capital of France is'), SamplingParams(seed=1), max_tokens=3))\n"
        "print(open('/proc/self/status', 'rb').read().decode())"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, encoding="utf-8", check=True)
    kib = {line.split(":")[0]: int(line.split()[1]) for line in result.stdout.splitlines() if line.endswith(" kB")}
    assert kib["VmRSS"] * 1024 < RESIDENT_MEGABYTES * 10**6
    assert kib["VmHWM"] * 1024 < RESIDENT_MEGABYTES * 10**6


def test_the_file_that_is_packed_is_the_book_s(packed_lm):
    tensors = read_gguf(find_weights()).tensors
    assert isinstance(packed_lm.weights.embed_tokens, TokenMatrix)
    assert packed_lm.weights.lm_head is packed_lm.weights.embed_tokens
    assert packed_lm.weights.embed_tokens.blocks.nbytes == tensors["token_embd.weight"].nbytes
