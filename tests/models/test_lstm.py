"""The recurrent model against its formulas in numpy, packed sequences and torch's LSTM."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from translator.attention.scores import SCORES
from translator.models.bahdanau import BahdanauLayer, ParallelLayer
from translator.models.lstm import BidirectionalEncoder, LstmSeq2Seq
from translator.models.lstm_layers import LstmLayer, SequenceDropout, lstm_cell

VOCAB, EMBEDDING, HIDDEN, ATTENTION = 19, 6, 5, 4
Array = np.ndarray


def make(**options: Any) -> LstmSeq2Seq:
    torch.manual_seed(3)
    options = {"encoder_layers": 1, "decoder_layers": 1, **options}
    model = LstmSeq2Seq(VOCAB, VOCAB, EMBEDDING, HIDDEN, ATTENTION, **options).double().eval()
    for parameter in model.parameters():  # zeros and ones could hide a misused bias
        nn.init.normal_(parameter, std=0.4)
    return model


@pytest.fixture
def batch() -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(5)
    mask = torch.arange(7) < torch.tensor([[7], [4], [1]])
    source = torch.randint(4, VOCAB, (3, 7), generator=generator) * mask
    target_in = torch.randint(4, VOCAB, (3, 5), generator=generator)
    target_in[:, 0] = 2
    return source, mask, target_in


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def numpy_cell(gates: Array, cell: Array) -> tuple[Array, Array]:
    i, f, g, o = np.split(gates, 4)
    cell = sigmoid(f) * cell + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(cell), cell


def numpy_weights(model: nn.Module) -> dict[str, Array]:
    return {name: parameter.detach().numpy() for name, parameter in model.named_parameters()}


def numpy_layer(weights: dict[str, Array], name: str, inputs: list[Array]) -> list[Array]:
    hidden, cell, outputs = np.zeros(HIDDEN), np.zeros(HIDDEN), []
    for x in inputs:
        gates = weights[f"{name}.input_weight"] @ x + weights[f"{name}.recurrent_weight"] @ hidden
        hidden, cell = numpy_cell(gates + weights[f"{name}.bias"], cell)
        outputs.append(hidden)
    return outputs


def numpy_annotations(weights: dict[str, Array], words: list[Array]) -> tuple[Array, Array]:
    ahead = numpy_layer(weights, "encoder.forwards.0", words)
    back = numpy_layer(weights, "encoder.backwards.0", words[::-1])[::-1]
    return np.stack([np.concatenate(pair) for pair in zip(ahead, back, strict=True)]), np.concatenate(
        (ahead[-1], back[0])
    )


def numpy_classic(weights: dict[str, Array], source: list[int], target_in: list[int]) -> Iterator[tuple[Array, Array]]:
    """One sentence, step by step, formula by formula; yields logits and attention."""
    table = weights["embeddings.output_weight"]  # tied to the decoder's embedding
    annotations, summary = numpy_annotations(weights, [weights["embeddings.source.weight"][word] for word in source])
    hidden = np.tanh(weights["decoder.start_hidden.weight"] @ summary + weights["decoder.start_hidden.bias"])
    cell = weights["decoder.start_cell.weight"] @ summary + weights["decoder.start_cell.bias"]
    score = "decoder.attention.score"
    for word in target_in:
        y = table[word]
        energies = [
            weights[f"{score}.energy.weight"][0]
            @ np.tanh(
                weights[f"{score}.query_projection.weight"] @ hidden + weights[f"{score}.key_projection.weight"] @ h
            )
            for h in annotations
        ]
        alpha = np.exp(energies) / np.exp(energies).sum()
        context = alpha @ annotations
        gates = (
            weights["decoder.first.from_input.weight"] @ y
            + weights["decoder.first.from_input.bias"]
            + weights["decoder.first.from_hidden.weight"] @ hidden
            + weights["decoder.first.from_context.weight"] @ context
        )
        hidden, cell = numpy_cell(gates, cell)
        output = np.tanh(
            weights["decoder.output_from_state.weight"] @ hidden
            + weights["decoder.output_from_state.bias"]
            + weights["decoder.output_from_input.weight"] @ y
            + weights["decoder.output_from_context.weight"] @ context
        )
        yield table @ output + weights["embeddings.output_bias"], alpha


def test_classic_recurrence_is_the_formula(batch: tuple[Tensor, Tensor, Tensor]) -> None:
    model = make()
    source, mask, target_in = batch
    decoded = model(*batch, need_weights=True)
    logits = model.project(decoded.states)
    assert decoded.attention.shape == (3, 1, 1, 5, 7)
    for row, length in enumerate(mask.sum(1).tolist()):
        steps = numpy_classic(numpy_weights(model), source[row, :length].tolist(), target_in[row].tolist())
        for position, (expected, alpha) in enumerate(steps):
            np.testing.assert_allclose(logits[row, position].detach().numpy(), expected, rtol=1e-10, atol=1e-12)
            weights = decoded.attention[row, 0, 0, position].detach().numpy()
            np.testing.assert_allclose(weights[:length], alpha, rtol=1e-10)


def test_cell_is_torchs_cell_in_value_and_gradient() -> None:
    torch.manual_seed(0)
    cell = nn.LSTMCell(3, HIDDEN).double()
    x, hidden, memory = torch.randn(4, 3).double(), torch.randn(4, HIDDEN).double(), torch.randn(4, HIDDEN).double()
    memory.requires_grad_()
    gates = x @ cell.weight_ih.t() + cell.bias_ih + hidden @ cell.weight_hh.t() + cell.bias_hh
    ours, theirs = lstm_cell(gates, memory), cell(x, (hidden, memory))
    torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-12)
    gradients = [torch.autograd.grad(sum(part.square().sum() for part in parts), memory) for parts in (ours, theirs)]
    torch.testing.assert_close(*gradients, rtol=1e-12, atol=1e-12)


def test_layer_is_torchs_layer() -> None:
    torch.manual_seed(0)
    ours, theirs = LstmLayer(3, HIDDEN).double(), nn.LSTM(3, HIDDEN).double()
    with torch.no_grad():
        ours.input_weight.copy_(theirs.weight_ih_l0)
        ours.recurrent_weight.copy_(theirs.weight_hh_l0)
        ours.bias.copy_(theirs.bias_ih_l0 + theirs.bias_hh_l0)
    x, hidden, cell = torch.randn(6, 4, 3).double(), torch.randn(4, HIDDEN).double(), torch.randn(4, HIDDEN).double()
    expected, (last_hidden, last_cell) = theirs(x, (hidden[None], cell[None]))
    torch.testing.assert_close(ours(x, hidden, cell), (expected, last_hidden[0], last_cell[0]))


@pytest.mark.parametrize("num_layers", [1, 2])
def test_encoder_equals_packed_sequences(num_layers: int) -> None:
    torch.manual_seed(0)
    encoder = BidirectionalEncoder(3, HIDDEN, num_layers, dropout=0.0, dropout_kind="ordinary").double()
    packed = nn.LSTM(3, HIDDEN, num_layers, bidirectional=True).double()
    with torch.no_grad():
        for layer in range(num_layers):
            for suffix, ours in (("", encoder.forwards[layer]), ("_reverse", encoder.backwards[layer])):
                ours.bias.normal_()
                getattr(packed, f"weight_ih_l{layer}{suffix}").copy_(ours.input_weight)
                getattr(packed, f"weight_hh_l{layer}{suffix}").copy_(ours.recurrent_weight)
                getattr(packed, f"bias_ih_l{layer}{suffix}").copy_(ours.bias)
                getattr(packed, f"bias_hh_l{layer}{suffix}").zero_()
    lengths = torch.tensor([3, 8, 1, 5])
    mask = torch.arange(8) < lengths[:, None]
    ours_in = torch.randn(8, 4, 3).double().requires_grad_()
    theirs_in = ours_in.detach().clone().requires_grad_()

    states, summary = encoder(ours_in, mask)
    output, (last, _) = packed(pack_padded_sequence(theirs_in, lengths, enforce_sorted=False))
    expected, _ = pad_packed_sequence(output)

    real = mask.t()
    torch.testing.assert_close(states[real], expected[real], rtol=1e-11, atol=1e-12)
    torch.testing.assert_close(summary, torch.cat((last[-2], last[-1]), 1), rtol=1e-11, atol=1e-12)
    (states[real].square().sum() + summary.sum()).backward()
    (expected[real].square().sum() + last[-2:].sum()).backward()
    torch.testing.assert_close(ours_in.grad, theirs_in.grad, rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(encoder.backwards[0].recurrent_weight.grad, packed.weight_hh_l0_reverse.grad)


def test_a_source_without_words_has_zero_attention_and_finite_gradients(batch: tuple[Tensor, Tensor, Tensor]) -> None:
    model = make().train()
    source, mask, target_in = batch
    mask[1] = False
    decoded = model(source, mask, target_in, need_weights=True)
    assert torch.equal(decoded.attention[1], torch.zeros_like(decoded.attention[1]))
    decoded.states.square().sum().backward()
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters() if parameter.grad is not None)


@pytest.mark.parametrize("score", SCORES)
def test_parallel_decoder_is_an_lstm_then_attention(score: str, batch: tuple[Tensor, Tensor, Tensor]) -> None:
    model = make(score=score, attend="parallel", decoder_layers=2)
    decoder = model.decoder
    memory = model.encode(*batch[:2])
    state = model.start(memory)
    embedded = model.embeddings.target(batch[2]).transpose(0, 1)  # (T, B, E)
    hidden, cell = state.hidden, state.cell

    below, _, _ = decoder.first.layer(embedded, hidden[0], cell[0])
    contexts = torch.empty(5, 3, 2 * HIDDEN, dtype=torch.float64)
    for row, length in enumerate(batch[1].sum(1)):
        annotations = memory.states[row, :length]
        keys = decoder.attention.score.prepare(decoder.attention.key(annotations))
        scores = decoder.attention.score(decoder.attention.query(below[:, row]), keys)
        contexts[:, row] = scores.softmax(-1) @ annotations
    above, _, _ = decoder.upper[0](torch.cat((below, contexts), -1), hidden[1], cell[1])
    expected = torch.tanh(
        decoder.output_from_state(above) + decoder.output_from_input(embedded) + decoder.output_from_context(contexts)
    )
    torch.testing.assert_close(model(*batch).states, expected.transpose(0, 1), rtol=1e-10, atol=1e-12)


def test_decoders_are_different_models() -> None:
    assert isinstance(make().decoder.first, BahdanauLayer)
    assert isinstance(make(attend="parallel").decoder.first, ParallelLayer)


@pytest.mark.parametrize("dropout_kind", ["ordinary", "variational"])
def test_full_teacher_forcing_is_the_default(dropout_kind: str, batch: tuple[Tensor, Tensor, Tensor]) -> None:
    model = make(dropout_kind=dropout_kind, dropout=0.4).train()
    outputs = []
    for options in ({}, {"teacher_forcing": 1.0}):
        torch.manual_seed(11)
        outputs.append(model(*batch, **options).states)
    assert torch.equal(*outputs)


def test_teacher_forcing_that_nearly_never_samples_equals_full_teacher_forcing(
    batch: tuple[Tensor, Tensor, Tensor],
) -> None:
    model = make(decoder_layers=2)
    sampled = model(*batch, teacher_forcing=1 - 1e-12, need_weights=True)
    forced = model(*batch, need_weights=True)
    torch.testing.assert_close(sampled, forced, rtol=1e-11, atol=1e-12)


def test_without_teacher_forcing_the_model_reads_only_its_own_output(batch: tuple[Tensor, Tensor, Tensor]) -> None:
    model = make(decoder_layers=2)
    free = model.project(model(*batch, teacher_forcing=0.0).states)
    state, tokens = model.start(model.encode(*batch[:2])), batch[2][:, 0]
    for position in range(batch[2].shape[1]):
        logits, state, _ = model.step(tokens, state)
        torch.testing.assert_close(free[:, position], logits, rtol=1e-11, atol=1e-12)
        tokens = logits.argmax(-1)
    assert not torch.equal(free, model.project(model(*batch).states))


def test_sampling_mixes_tokens_in_the_given_ratio() -> None:
    model = make()
    seen: list[Tensor] = []
    embed = model.embeddings.target
    embed.register_forward_hook(lambda module, inputs, output: seen.append(inputs[0]))
    source = torch.full((400, 3), 5)
    target_in = torch.full((400, 4), 2)  # BOS, which the model never predicts (see the bias below)
    with torch.no_grad():
        model.embeddings.output_bias[2] = -100.0
    torch.manual_seed(0)
    model(source, torch.ones_like(source, dtype=torch.bool), target_in, teacher_forcing=0.75)
    forced = (torch.stack(seen)[1:] == 2).double().mean().item()
    assert forced == pytest.approx(0.75, abs=0.05)


def test_parallel_decoder_refuses_to_sample(batch: tuple[Tensor, Tensor, Tensor]) -> None:
    with pytest.raises(ValueError, match=r"teacher_forcing=0\.5"):
        make(attend="parallel")(*batch, teacher_forcing=0.5)


def test_variational_dropout_keeps_its_mask_over_time_and_changes_it_between_sentences() -> None:
    torch.manual_seed(0)
    ones = torch.ones(6, 30, 40)
    variational, ordinary = SequenceDropout(0.5, "variational"), SequenceDropout(0.5, "ordinary")
    dropped = variational(ones, variational.draw(30, 40, ones))
    assert torch.equal(dropped, dropped[:1].expand_as(dropped))
    assert not torch.equal(dropped[:, 0], dropped[:, 1])
    assert 0.4 < (dropped == 0).double().mean() < 0.6
    each = ordinary(ones, ordinary.draw(30, 40, ones))
    assert not torch.equal(each[0], each[1])
    assert variational.eval().draw(30, 40, ones) is None


def test_variational_sampling_uses_one_mask_for_all_steps() -> None:
    """Scheduled sampling decodes step by step, but must not draw a new mask at every step."""
    model = make(dropout=0.5, dropout_kind="variational").train()
    source, mask = torch.full((4, 3), 5), torch.ones(4, 3, dtype=torch.bool)
    target_in = torch.full((4, 6), 2)
    torch.manual_seed(7)
    forced = model(source, mask, target_in).states
    torch.manual_seed(7)
    sampled = model(source, mask, target_in, teacher_forcing=1 - 1e-12).states
    torch.testing.assert_close(sampled, forced, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("tie", ["none", "target", "all"])
def test_tied_embeddings_share_their_storage(tie: str) -> None:
    embeddings = make(tie_embeddings=tie).embeddings
    assert (embeddings.target.weight is embeddings.output_weight) == (tie != "none")
    assert (embeddings.target.weight is embeddings.source.weight) == (tie == "all")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tie_embeddings": "all", "target_vocab_size": 5}, "tie_embeddings"),
        ({"attend": "sideways"}, "attend"),
        ({"dropout_kind": "rare"}, "dropout_kind"),
        ({"score": "guess"}, "score"),
        ({"decoder_layers": 0}, "decoder_layers"),
    ],
)
def test_impossible_options_are_refused_by_name(options: dict[str, Any], message: str) -> None:
    sizes = {"target_vocab_size": VOCAB, "encoder_layers": 1, "decoder_layers": 1, **options}
    with pytest.raises(ValueError, match=message):
        LstmSeq2Seq(VOCAB, embedding_size=4, hidden_size=4, attention_size=4, **sizes)


@pytest.mark.parametrize("attend", ["classic", "parallel"])
def test_initialization_is_orthogonal_with_unit_forget_bias_and_small_logits(attend: str) -> None:
    torch.manual_seed(0)
    model = LstmSeq2Seq(50, 50, 64, 64, 64, 2, 2, attend=attend).eval()
    recurrent = model.encoder.forwards[0].recurrent_weight.chunk(4)[0]
    torch.testing.assert_close(recurrent @ recurrent.t(), torch.eye(64), atol=1e-5, rtol=0)
    assert torch.equal(model.encoder.backwards[1].bias.chunk(4)[1], torch.ones(64))
    source = torch.randint(4, 50, (8, 9))
    logits = model.project(model(source, torch.ones_like(source, dtype=torch.bool), source).states)
    assert logits.std() < 1
