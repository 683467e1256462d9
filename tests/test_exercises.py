"""What every chapter's exercises have in common; what each one checks is tested in ``test_exercises_<chapter>.py``."""

import importlib
import inspect
from pathlib import Path

import numpy as np
import pytest
import torch

from llm_internals import exercises

FOLDER = Path(exercises.__file__).parent
LOGPROBS = torch.tensor([0.5, 0.25, 0.25], dtype=torch.float64).log()
CHAPTERS = sorted(path.stem for path in FOLDER.glob("[!_]*.py"))


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_chapter_has_three_checks_that_take_no_answer_for_an_unfinished_one(chapter, lm):
    """The page runs with the reader's placeholder, so None is answered in a sentence and never raises."""
    module = importlib.import_module(f"llm_internals.exercises.{chapter}")
    checks = [thing for name, thing in vars(module).items() if name.startswith("check_")]
    assert len(checks) == 3
    for check in checks:
        others = list(inspect.signature(check).parameters)[1:]
        given = {
            "tokenizer": lm.tokenizer,
            "logits": np.array([2.0, 1.0, 0.0]),
            "token": 0,
            "logprobs": LOGPROBS,
            "reward": LOGPROBS,
            "patterns": np.full((2, 2, 4, 4), 0.25),
            "period": 2,
            "config": lm.config,
            "id": 1,
        }
        reply = check(None, **{name: given[name] for name in others})
        assert isinstance(reply, str)
        assert reply
        assert not reply.startswith("Right")


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_chapter_s_exercises_have_a_test_file(chapter):
    assert (Path(__file__).parent / f"test_exercises_{chapter}.py").exists()
