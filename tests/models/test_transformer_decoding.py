"""The decoder one position at a time, as in search, against all positions at once."""

import pytest
import torch

from translator.kernels.decoding import StepDecoder
from translator.models.transformer import Transformer
from translator.models.transformer_decoding import decode_step

VOCAB = 13


@pytest.mark.parametrize("norm_order", ["pre", "post"])
@torch.no_grad()
def test_steps_give_the_states_and_weights_of_the_whole(norm_order: str) -> None:
    torch.manual_seed(2)
    model = Transformer(VOCAB, VOCAB, 12, 20, 3, encoder_layers=1, decoder_layers=2, norm_order=norm_order)
    model = model.double().eval()
    source = torch.randint(4, VOCAB, (2, 5))
    mask = torch.arange(5) < torch.tensor([[5], [3]])
    target = torch.randint(4, VOCAB, (2, 4))
    whole = model(source, mask, target, need_weights=True)
    logits = model.project(whole.states)  # (B, T, V)
    state = model.start(model.encode(source, mask))
    assert isinstance(state.decoder, StepDecoder)
    for position in range(4):
        x = model._embed_target(target[:, position : position + 1], position).squeeze(1)  # (B, D)
        x, state, weights = decode_step(x, state, True)
        torch.testing.assert_close(state.decoder.logits(x), logits[:, position])
        torch.testing.assert_close(torch.stack(weights, 1), whole.attention[..., position, :])
    assert state.length == 4
