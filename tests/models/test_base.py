"""What all models share."""

import pytest
from torch import nn

from translator.models.base import evaluation_mode


def test_evaluation_mode_ends_with_every_part_as_it_was() -> None:
    model = nn.Sequential(nn.Dropout(), nn.Sequential(nn.Dropout(), nn.Linear(2, 2)))
    model[1].eval()  # frozen, say, while the rest is trained
    before = [module.training for module in model.modules()]
    with evaluation_mode(model):
        assert not any(module.training for module in model.modules())
    assert [module.training for module in model.modules()] == before
    with pytest.raises(RuntimeError), evaluation_mode(model):
        raise RuntimeError
    assert [module.training for module in model.modules()] == before
