"""What all tests share: shape checks on every call, one loaded model, repeatable examples.

The import hook has to be installed before anything imports the package: from then on, jaxtyping and beartype check the
annotations of every function in it, shapes included.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

from jaxtyping import install_import_hook

install_import_hook("llm_internals", "beartype.beartype")

import pytest
import torch
from hypothesis import settings

from llm_internals.checkpoint import LanguageModel, load_checkpoint
from llm_internals.config import LlamaConfig

settings.register_profile("repeatable", derandomize=True, deadline=None, max_examples=50, database=None)
settings.load_profile("repeatable")
torch.set_num_threads(1)


@pytest.fixture(scope="session")
def lm() -> LanguageModel:
    """The real model, SmolLM2-135M-Instruct; a missing weights file is an error and never a skip."""
    return load_checkpoint()


@pytest.fixture
def tiny_config() -> LlamaConfig:
    """Small enough to run in no time, with sizes that are all different, so that no axis can be taken for another."""
    return LlamaConfig(
        vocab_size=50,
        hidden_size=24,
        intermediate_size=40,
        num_hidden_layers=3,
        num_attention_heads=6,
        num_key_value_heads=2,
        head_dim=8,
        rms_norm_eps=1e-5,
        rope_theta=1e4,
        max_position_embeddings=64,
        tie_word_embeddings=True,
    )
