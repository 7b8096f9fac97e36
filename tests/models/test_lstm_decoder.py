"""The bridge to the decoder, the `attend` option, and inputs of the fused kernels; test_lstm.py has the formulas."""

from typing import Any

import numpy as np
import pytest
import torch

from translator.models.base import Memory
from translator.models.lstm import LstmSeq2Seq
from translator.models.lstm_decoder import Decoder, LstmState

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


@pytest.mark.parametrize("attend", ["classic", "parallel"])
def test_fused_kernels_receive_contiguous_states(attend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """cuDNN refuses a state that is a slice of a larger tensor, as one layer's state may be."""
    lstm, states = torch.lstm, []

    def noting(inputs: torch.Tensor, start: tuple[torch.Tensor, torch.Tensor], *others: Any) -> Any:
        states.extend(start)
        return lstm(inputs, start, *others)

    monkeypatch.setattr(torch, "lstm", noting)
    model = LstmSeq2Seq(11, 11, EMBEDDING, HIDDEN, ATTENTION, 2, LAYERS, attend=attend)
    source = torch.tensor([[4, 5, 6], [7, 8, 3]])
    model(source, source > 0, source)
    assert len(states) >= 2 * (2 * 2 + LAYERS - 1)
    assert all(state.is_contiguous() for state in states)


@pytest.mark.parametrize("attend", ["classic", "parallel"])
def test_under_autocast_recurrences_compute_and_keep_their_state_in_float32(
    attend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Autocast would run cuDNN's recurrences in float16, where small gradients underflow, even for bfloat16."""
    lstm, seen = torch.lstm, set()

    def noting(inputs: torch.Tensor, start: tuple[torch.Tensor, torch.Tensor], *others: Any) -> Any:
        seen.add((torch.is_autocast_enabled("cpu"), *(tensor.dtype for tensor in (inputs, *start))))
        return lstm(inputs, start, *others)

    monkeypatch.setattr(torch, "lstm", noting)
    torch.manual_seed(2)
    model = LstmSeq2Seq(11, 11, EMBEDDING, HIDDEN, ATTENTION, 2, LAYERS, attend=attend).eval()
    source = torch.tensor([[4, 5, 6], [7, 8, 3]])
    expected = model.project(model(source, source > 0, source).states)
    seen.clear()
    with torch.autocast("cpu", torch.bfloat16):
        decoded = model(source, source > 0, source)
        actual = model.project(decoded.states)
        step = model.step(source[:, 0], model.start(model.encode(source, source > 0)))
    assert seen == {(False, torch.float32, torch.float32, torch.float32)}
    assert isinstance(step.state, LstmState)
    assert step.state.cell.dtype == torch.float32
    assert actual.dtype == torch.bfloat16, "matrix products are still done in the reduced format"
    torch.testing.assert_close(actual.float(), expected, rtol=0.05, atol=0.05)
    actual.float().sum().backward()
    assert all(p.grad is None or p.grad.dtype == torch.float32 for p in model.parameters())
