"""Code shared by all models."""

import pytest
from torch import nn

from translator.models.base import evaluation_mode


def test_evaluation_mode_restores_the_mode_of_every_submodule() -> None:
    model = nn.Sequential(nn.Dropout(), nn.Sequential(nn.Dropout(), nn.Linear(2, 2)))
    model[1].eval()  # e.g. frozen while the rest is trained
    before = [module.training for module in model.modules()]
    with evaluation_mode(model):
        assert not any(module.training for module in model.modules())
    assert [module.training for module in model.modules()] == before
    with pytest.raises(RuntimeError), evaluation_mode(model):
        raise RuntimeError
    assert [module.training for module in model.modules()] == before
