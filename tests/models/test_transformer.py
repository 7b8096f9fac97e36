"""Layers against torch's, and behaviour specific to the Transformer. test_contract.py has what all models share."""

import math

import pytest
import torch
from torch import Tensor, nn

from translator.attention.multihead import MultiHeadAttention
from translator.attention.scores import SCORES
from translator.kernels.key_value_cache import STEPS_OF_ROOM
from translator.models.transformer import Transformer
from translator.models.transformer_layers import DecoderLayer, EncoderLayer, FeedForward, LayerOptions

SIZE, HEADS, INNER = 12, 3, 20


@pytest.fixture(autouse=True)
def _double_precision() -> object:
    torch.manual_seed(0)
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def options(norm_order: str, activation: str = "relu") -> LayerOptions:
    return LayerOptions(SIZE, INNER, HEADS, norm_order=norm_order, activation=activation, dropout=0.0)


@torch.no_grad()
def copy_attention(ours: MultiHeadAttention, reference: nn.MultiheadAttention) -> None:
    nn.init.normal_(reference.in_proj_bias)
    nn.init.normal_(reference.out_proj.bias)
    ours.input_projection.weight.copy_(reference.in_proj_weight)
    ours.input_projection.bias.copy_(reference.in_proj_bias)
    ours.output_projection.load_state_dict(reference.out_proj.state_dict())


@torch.no_grad()
def copy_norm(ours: nn.Module, reference: nn.LayerNorm) -> None:
    nn.init.normal_(reference.weight)
    nn.init.normal_(reference.bias)
    ours.load_state_dict(reference.state_dict())


def masks() -> tuple[Tensor, Tensor]:
    memory_mask = torch.arange(6) < torch.tensor([6, 3])[:, None]  # (B, S)
    return memory_mask, torch.ones(4, 4, dtype=torch.bool).tril()  # (T, T)


@pytest.mark.parametrize("norm_order", ["pre", "post"])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_encoder_layer_equals_torchs(norm_order: str, activation: str) -> None:
    reference = nn.TransformerEncoderLayer(
        SIZE, HEADS, INNER, dropout=0.0, activation=activation, batch_first=True, norm_first=norm_order == "pre"
    )
    ours = EncoderLayer(options(norm_order, activation))
    copy_attention(ours.self_attention, reference.self_attn)
    copy_norm(ours.self_residual.norm, reference.norm1)
    copy_norm(ours.feedforward_residual.norm, reference.norm2)
    ours.feedforward.inner.load_state_dict(reference.linear1.state_dict())
    ours.feedforward.outer.load_state_dict(reference.linear2.state_dict())
    mask, _ = masks()
    x = torch.randn(2, 6, SIZE)
    expected = reference(x, src_key_padding_mask=~mask)
    torch.testing.assert_close(ours(x, mask[:, None, None]), expected)


@pytest.mark.parametrize("norm_order", ["pre", "post"])
def test_decoder_layer_equals_torchs(norm_order: str) -> None:
    reference = nn.TransformerDecoderLayer(
        SIZE, HEADS, INNER, dropout=0.0, batch_first=True, norm_first=norm_order == "pre"
    )
    ours = DecoderLayer(options(norm_order))
    copy_attention(ours.self_attention, reference.self_attn)
    copy_attention(ours.cross_attention, reference.multihead_attn)
    copy_norm(ours.self_residual.norm, reference.norm1)
    copy_norm(ours.cross_residual.norm, reference.norm2)
    copy_norm(ours.feedforward_residual.norm, reference.norm3)
    ours.feedforward.inner.load_state_dict(reference.linear1.state_dict())
    ours.feedforward.outer.load_state_dict(reference.linear2.state_dict())
    memory_mask, causal = masks()
    x, memory = torch.randn(2, 4, SIZE), torch.randn(2, 6, SIZE)
    expected = reference(x, memory, tgt_mask=~causal, memory_key_padding_mask=~memory_mask)
    actual, _ = ours(x, causal, None, memory, memory_mask[:, None, None])
    torch.testing.assert_close(actual, expected)


@pytest.mark.parametrize("norm_order", ["pre", "post"])
def test_whole_model_equals_torchs_transformer(norm_order: str) -> None:
    """Embedding, positions, stacks, final norms and tied projection combined."""
    ours = Transformer(17, 17, SIZE, INNER, HEADS, 2, 3, norm_order=norm_order, dropout=0.0)
    reference = nn.Transformer(SIZE, HEADS, 2, 3, INNER, dropout=0.0, batch_first=True, norm_first=norm_order == "pre")
    if norm_order == "post":  # torch adds norms after the stacks for both norm orders
        reference.encoder.norm = reference.decoder.norm = None
    else:
        copy_norm(ours.encoder_norm, reference.encoder.norm)
        copy_norm(ours.decoder_norm, reference.decoder.norm)
    for our_layer, layer in zip(ours.encoder, reference.encoder.layers, strict=True):
        copy_attention(our_layer.self_attention, layer.self_attn)
        our_layer.feedforward.inner.load_state_dict(layer.linear1.state_dict())
        our_layer.feedforward.outer.load_state_dict(layer.linear2.state_dict())
    for our_layer, layer in zip(ours.decoder, reference.decoder.layers, strict=True):
        copy_attention(our_layer.self_attention, layer.self_attn)
        copy_attention(our_layer.cross_attention, layer.multihead_attn)
        our_layer.feedforward.inner.load_state_dict(layer.linear1.state_dict())
        our_layer.feedforward.outer.load_state_dict(layer.linear2.state_dict())
    source, target = torch.randint(4, 17, (2, 6)), torch.randint(4, 17, (2, 4))
    memory_mask, causal = masks()

    def embed(ids: Tensor) -> Tensor:
        position = torch.arange(ids.shape[1])[:, None]
        angle = position / 10000 ** (torch.arange(0, SIZE, 2) / SIZE)
        encoding = torch.stack((angle.sin(), angle.cos()), -1).flatten(1)
        return ours.embeddings.target.weight[ids] * math.sqrt(SIZE) + encoding

    expected = reference(
        embed(source),
        embed(target),
        tgt_mask=~causal,
        src_key_padding_mask=~memory_mask,
        memory_key_padding_mask=~memory_mask,
    )
    actual = ours(source, memory_mask, target).states
    torch.testing.assert_close(actual, expected)
    torch.testing.assert_close(ours.project(actual), expected @ ours.embeddings.target.weight.T)


def test_swiglu_equals_its_formula() -> None:
    layer = FeedForward(options("pre", "swiglu"))
    x = torch.randn(2, 3, SIZE)
    gate, values = (x @ layer.inner.weight.T + layer.inner.bias).split(INNER, -1)
    expected = (gate * torch.sigmoid(gate) * values) @ layer.outer.weight.T + layer.outer.bias
    torch.testing.assert_close(layer(x), expected)


@pytest.mark.parametrize(("tie", "num_matrices"), [("all", 1), ("target", 2), ("none", 3)])
def test_embeddings_are_shared_as_asked(tie: str, num_matrices: int) -> None:
    model = Transformer(17, 17, SIZE, INNER, HEADS, 1, 1, tie_embeddings=tie)
    matrices = (model.embeddings.source.weight, model.embeddings.target.weight, model.output_weight)
    assert len({matrix.data_ptr() for matrix in matrices}) == num_matrices


def test_two_vocabularies_cannot_share_all() -> None:
    with pytest.raises(ValueError, match="not 17 and 19 pieces"):
        Transformer(17, 19, SIZE, INNER, HEADS, 1, 1, tie_embeddings="all")
    Transformer(17, 19, SIZE, INNER, HEADS, 1, 1, tie_embeddings="target")


@pytest.mark.parametrize("option", ["norm_order", "norm", "activation", "positions", "score", "tie_embeddings"])
def test_unknown_choices_are_refused(option: str) -> None:
    with pytest.raises(ValueError, match="must be one of"):
        Transformer(17, 17, SIZE, INNER, HEADS, 1, 1, **{option: "nonsense"})


def test_teacher_forcing_cannot_be_relaxed() -> None:
    model = Transformer(17, 17, SIZE, INNER, HEADS, 1, 1)
    ids, mask = torch.full((1, 2), 5), torch.ones(1, 2, dtype=torch.bool)
    with pytest.raises(ValueError, match="teacher_forcing must be 1"):
        model(ids, mask, ids, teacher_forcing=0.5)


@pytest.mark.parametrize("norm_order", ["pre", "post"])
def test_a_deep_stack_starts_with_outputs_and_gradients_of_normal_size(norm_order: str) -> None:
    depth = 24
    model = Transformer(50, 50, 64, 128, 4, depth, depth, norm_order=norm_order, dropout=0.0)
    source, target = torch.randint(4, 50, (8, 10)), torch.randint(4, 50, (8, 10))
    mask = torch.ones(8, 10, dtype=torch.bool)
    logits = model.project(model(source, mask, target).states)
    assert 0.3 < logits.std() < 3
    torch.nn.functional.cross_entropy(logits.flatten(0, 1), target.flatten()).backward()
    norms = [layer.feedforward.inner.weight.grad.norm() for layer in (*model.encoder, *model.decoder)]
    assert max(norms) / min(norms) < 100


def test_hypotheses_of_a_sentence_share_its_memory() -> None:
    model = Transformer(17, 17, SIZE, INNER, HEADS, 1, 2, dropout=0.0).eval()
    source = torch.randint(4, 17, (2, 6))
    state = model.start(model.encode(source, torch.ones(2, 6, dtype=torch.bool)))
    state = model.step(torch.tensor([2, 2]), state).state
    wide = state.select(torch.tensor([0, 0, 0, 1, 1, 1]))
    assert wide.source.storage.keys.data_ptr() == state.source.storage.keys.data_ptr()
    assert wide.target.storage.keys.data_ptr() == state.target.storage.keys.data_ptr()


def test_two_continuations_of_a_state_are_independent() -> None:
    """Even after one of them has appended its keys to the ones they share."""
    model = Transformer(17, 17, SIZE, INNER, HEADS, 1, 2, dropout=0.0).eval()
    source, mask = torch.randint(4, 17, (2, 6)), torch.ones(2, 6, dtype=torch.bool)
    state = model.step(torch.tensor([2, 2]), model.start(model.encode(source, mask))).state
    first = model.step(torch.tensor([5, 6]), state).state
    second = model.step(torch.tensor([7, 8]), state).state
    for tokens, after in (([5, 6], first), ([7, 8], second)):
        target = torch.tensor([[2, 2], tokens, [9, 9]]).T  # (B, T)
        expected = model.project(model(source, mask, target).states[:, -1])
        torch.testing.assert_close(model.step(torch.tensor([9, 9]), after).logits, expected)


def test_a_table_of_slots_grows() -> None:
    model = Transformer(17, 17, SIZE, INNER, HEADS, 1, 2, dropout=0.0).double().eval()
    source, mask = torch.randint(4, 17, (2, 6)), torch.ones(2, 6, dtype=torch.bool)
    target = torch.randint(4, 17, (2, 3 * STEPS_OF_ROOM))
    state = model.start(model.encode(source, mask))
    for tokens in target.unbind(1):
        logits, state, _ = model.step(tokens, state)
    torch.testing.assert_close(logits, model.project(model(source, mask, target).states[:, -1]))


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("positions", ["sinusoidal", "rotary", "relative"])
def test_steps_equal_the_whole_target(score: str, positions: str) -> None:
    model = Transformer(17, 17, SIZE, INNER, HEADS, 1, 2, score=score, positions=positions, dropout=0.0).double().eval()
    source, mask = torch.randint(4, 17, (2, 6)), torch.ones(2, 6, dtype=torch.bool)
    target = torch.randint(4, 17, (2, 5))
    whole = model.project(model(source, mask, target).states)  # (B, T, V)
    state = model.start(model.encode(source, mask))
    for position, tokens in enumerate(target.unbind(1)):
        logits, state, _ = model.step(tokens, state)
        torch.testing.assert_close(logits, whole[:, position])


def test_steps_apply_no_dropout() -> None:
    model = Transformer(17, 17, SIZE, INNER, HEADS, 1, 2, dropout=0.5, attention_dropout=0.5, activation_dropout=0.5)
    source, mask = torch.randint(4, 17, (2, 6)), torch.ones(2, 6, dtype=torch.bool)
    state, tokens = model.eval().start(model.encode(source, mask)), torch.tensor([2, 2])
    expected = model.step(tokens, state).logits
    torch.testing.assert_close(model.train().step(tokens, state).logits, expected)
