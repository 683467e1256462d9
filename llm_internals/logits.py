"""Stage 4: hidden state -> logits, one raw score for every token of the vocabulary.

The hidden state is multiplied with each token's output vector. The scores aren't probabilities: they may be negative,
have no fixed sum, and mean the same after adding a constant to all. Softmax, in stage 5, makes a distribution of them.

Chapter: ``04_logits``.
Source: Press and Wolf (2017), "Using the output embedding to improve language models"; the logit lens:
nostalgebraist (2020), "interpreting GPT: the logit lens"; transformers ``modeling_llama.py``, ``LlamaForCausalLM``.
"""

from jaxtyping import Float
from torch import Tensor

from llm_internals.linear import linear
from llm_internals.model import Weights
from llm_internals.norm import rms_norm


def lm_head(hidden: Float[Tensor, "seq hidden_size"], weights: Weights) -> Float[Tensor, "seq vocab_size"]:
    """z = h W_U: a score a token, for each of the given positions.

    Only the last position decides the next token, so a decode loop passes ``hidden[-1:]``.

    Parameters
    ----------
    hidden : Tensor [seq, hidden_size]
        After the final norm, as `model.forward` returns it.
    """
    return linear(hidden, weights.lm_head)


def logit_lens(resid: Float[Tensor, "seq hidden_size"], weights: Weights) -> Float[Tensor, "seq vocab_size"]:
    """Logits read off the residual stream of any layer, as if the model ended there.

    The final norm is applied first, as at the real end; without it the scores of different layers couldn't be compared.

    Parameters
    ----------
    resid : Tensor [seq, hidden_size]
        The stream between two blocks, e.g. ``blocks.12.resid_post``.
    """
    return lm_head(rms_norm(resid, weights.norm, weights.config.rms_norm_eps), weights)
