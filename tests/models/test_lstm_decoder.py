"""The bridge to the decoder and the `attend` option; the formulas are tested in test_lstm.py."""

import numpy as np
import pytest
import torch

from translator.models.base import Memory
from translator.models.lstm_decoder import Decoder

EMBEDDING, HIDDEN, ATTENTION, LAYERS = 6, 5, 4, 3


def make(attend: str) -> Decoder:
    torch.manual_seed(1)
    return Decoder(EMBEDDING, HIDDEN, ATTENTION, LAYERS, "additive", attend, 0.0, "ordinary").double()


@pytest.mark.parametrize("attend", ["classic", "parallel"])
def test_every_layer_starts_from_its_own_share_of_the_bridge(attend: str) -> None:
    decoder = make(attend)
    summary = torch.randn(2, 2 * HIDDEN, dtype=torch.float64)
    annotations, mask = torch.randn(2, 3, 2 * HIDDEN, dtype=torch.float64), torch.ones(2, 3, dtype=torch.bool)
    state = decoder.start(Memory(annotations, mask, summary))
    assert state.source.states is annotations
    for name, squash, found in (("start_hidden", np.tanh, state.hidden), ("start_cell", np.array, state.cell)):
        layer = decoder.get_submodule(name)
        weight, bias = (parameter.detach().numpy() for parameter in layer.parameters())
        for number in range(LAYERS):
            rows = slice(number * HIDDEN, (number + 1) * HIDDEN)
            expected = squash(summary.numpy() @ weight[rows].T + bias[rows])
            np.testing.assert_allclose(found[number].detach().numpy(), expected, rtol=1e-12)


def test_an_unknown_attend_option_is_refused() -> None:
    with pytest.raises(ValueError, match="one of classic, parallel, not both"):
        make("both")
