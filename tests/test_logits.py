"""`llm_internals.logits`: a score for every token, and the same read off any layer."""

from dataclasses import replace

import pytest
import torch

from llm_internals.logits import lm_head, logit_lens
from llm_internals.model import forward
from llm_internals.scores import softmax
from llm_internals.tap import Recorder
from tests.tiny_model import random_weights

IDS = torch.tensor([3, 1, 4, 1, 5, 9])
ROUNDED = 6e-4
"""Half a unit of the third decimal, and 1e-4 for float32."""


def test_a_score_is_the_product_with_the_token_s_vector(tiny_config):
    weights = random_weights(tiny_config, dtype=torch.float64)
    hidden = forward(IDS, weights)
    scores = lm_head(hidden, weights)
    assert scores.shape == (6, 50)
    assert float(scores[2, 7]) == pytest.approx(float(hidden[2] @ weights.embed_tokens[:, 7]))


def test_the_last_position_alone_gets_the_same_scores(tiny_config):
    weights = random_weights(tiny_config, dtype=torch.float64)
    hidden = forward(IDS, weights)
    torch.testing.assert_close(lm_head(hidden[-1:], weights), lm_head(hidden, weights)[-1:])


def test_an_untied_model_has_an_output_matrix_of_its_own(tiny_config):
    weights = random_weights(replace(tiny_config, tie_word_embeddings=False))
    hidden = forward(IDS, weights)
    assert torch.equal(lm_head(hidden, weights), hidden @ weights.lm_head)
    assert not torch.allclose(lm_head(hidden, weights), hidden @ weights.embed_tokens)


def test_at_the_last_layer_the_lens_is_the_model(tiny_config):
    weights, recorder = random_weights(tiny_config), Recorder("blocks.2.resid_post")
    hidden = forward(IDS, weights, tap=recorder)
    assert torch.equal(logit_lens(recorder["blocks.2.resid_post"], weights), lm_head(hidden, weights))


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        ("The capital of France is", {" Paris": 0.773, " the": 0.065, " London": 0.012}),
        ("The capital of Australia is", {" Sydney": 0.362, " Canberra": 0.341}),
        ("Once upon a time, there was a", {" small": 0.062, " town": 0.053, " woman": 0.041}),
        ("def fibonacci(n):\n    if n <=", {" ": 0.994}),
        ("To be or not to", {" be": 0.916}),
        ("12 + 7 =", {" ": 0.963}),
        ("My favorite pet is a", {" cat": 0.374, " dog": 0.148}),
        ("The capital of France is ", {"2": 0.326, "1": 0.245}),
    ],
)
def test_the_real_model_s_likeliest_next_tokens_are_those_that_the_book_tells(lm, prompt, expected):
    hidden = forward(torch.tensor(lm.tokenizer.encode(prompt)), lm.weights)
    probs = softmax(lm_head(hidden[-1:], lm.weights)[0])
    likeliest = (-probs).argsort()[: len(expected)].tolist()
    assert [lm.tokenizer.decode([id]) for id in likeliest] == list(expected)
    assert probs[likeliest].tolist() == pytest.approx(list(expected.values()), abs=ROUNDED)


def test_the_lens_sees_the_two_cities_of_australia_only_in_the_last_layers(lm):
    recorder = Recorder("blocks.*.resid_post")
    forward(torch.tensor(lm.tokenizer.encode("The capital of Australia is")), lm.weights, tap=recorder)
    cities = [lm.tokenizer.encode(city)[0] for city in (" Sydney", " Canberra")]
    probs = [softmax(logit_lens(stream[-1:], lm.weights)[0])[cities] for stream in recorder.tensors.values()]
    assert max(city for layer in probs[:27] for city in layer) < 1e-4
    assert probs[27].tolist() == pytest.approx([0.00014, 0.00003], abs=1e-5)
    assert probs[28].tolist() == pytest.approx([0.0017, 0.0014], abs=1e-4)
    assert probs[29].tolist() == pytest.approx([0.362, 0.341], abs=ROUNDED)


def test_before_the_first_layer_the_lens_returns_the_input_token_unless_another_s_vector_is_very_long(lm):
    """Tied weights: a token's vector is most like itself, but a product also rewards length."""
    recorder, ids = Recorder("embed"), torch.tensor(lm.tokenizer.encode("The capital of Australia is"))
    forward(ids, lm.weights, tap=recorder)
    returned = logit_lens(recorder["embed"], lm.weights).argmax(-1)
    assert (returned == ids).tolist() == [True, True, True, False, True]
    assert int(returned[3]) == int(lm.weights.embed_tokens.norm(dim=0).argmax())
