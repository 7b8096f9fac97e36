"""Multi-head attention against torch.nn.MultiheadAttention and against the formula."""

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from translator.attention.multihead import MultiHeadAttention, fused_attention
from translator.attention.scores import SCORES

BATCH, TARGET, SOURCE, SIZE, HEADS = 3, 5, 7, 12, 4


@pytest.fixture(autouse=True)
def _double_precision() -> object:
    torch.manual_seed(0)
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def copy_of(reference: nn.MultiheadAttention) -> MultiHeadAttention:
    ours = MultiHeadAttention(SIZE, HEADS)
    with torch.no_grad():
        ours.input_projection.weight.copy_(reference.in_proj_weight)
        ours.input_projection.bias.copy_(reference.in_proj_bias)
        ours.output_projection.weight.copy_(reference.out_proj.weight)
        ours.output_projection.bias.copy_(reference.out_proj.bias)
    return ours


def reference_attention() -> nn.MultiheadAttention:
    reference = nn.MultiheadAttention(SIZE, HEADS, batch_first=True)
    nn.init.normal_(reference.in_proj_bias)
    nn.init.normal_(reference.out_proj.bias)
    return reference


def padding_mask() -> Tensor:
    return torch.arange(SOURCE) < torch.tensor([7, 4, 1])[:, None]  # (B, S)


def test_cross_attention_equals_torchs() -> None:
    reference = reference_attention()
    ours = copy_of(reference)
    queries, memory = torch.randn(BATCH, TARGET, SIZE), torch.randn(BATCH, SOURCE, SIZE)
    mask = padding_mask()
    expected, expected_weights = reference(queries, memory, memory, key_padding_mask=~mask, average_attn_weights=False)
    actual, weights = ours(
        ours.project_queries(queries), ours.project_memory(memory), mask[:, None, None], need_weights=True
    )
    torch.testing.assert_close(actual, expected)
    torch.testing.assert_close(weights, expected_weights)


@pytest.mark.parametrize("causal", [True, False])
def test_self_attention_equals_torchs(causal: bool) -> None:
    reference = reference_attention()
    ours = copy_of(reference)
    x = torch.randn(BATCH, SOURCE, SIZE)
    mask = padding_mask()[:, None, None]
    allowed = torch.ones(SOURCE, SOURCE, dtype=torch.bool)
    if causal:
        allowed, mask = allowed.tril(), mask & allowed.tril()
    expected, _ = reference(x, x, x, key_padding_mask=~padding_mask(), attn_mask=~allowed)
    actual, _ = ours(*ours.project(x), mask)
    torch.testing.assert_close(actual, expected)


@pytest.mark.parametrize("score", SCORES)
def test_every_score_equals_the_formula_head_by_head(score: str) -> None:
    attention = MultiHeadAttention(SIZE, HEADS, score=score)
    for projection in (attention.input_projection, attention.output_projection):
        nn.init.zeros_(projection.bias)  # the formula below has none
    x, memory = torch.randn(BATCH, TARGET, SIZE), torch.randn(BATCH, SOURCE, SIZE)
    mask = padding_mask()
    actual, weights = attention(
        attention.project_queries(x), attention.project_memory(memory), mask[:, None, None], need_weights=True
    )
    w_query, w_key, w_value = attention.input_projection.weight.detach().numpy().reshape(3, HEADS, SIZE // HEADS, SIZE)
    heads = np.zeros((BATCH, TARGET, HEADS, SIZE // HEADS))
    for row in range(BATCH):
        length = int(mask[row].sum())
        for head in range(HEADS):
            queries = x[row].numpy() @ w_query[head].T
            keys = memory[row, :length].numpy() @ w_key[head].T
            values = memory[row, :length].numpy() @ w_value[head].T
            scores = (
                attention.score(torch.from_numpy(queries), attention.score.prepare(torch.from_numpy(keys)))
                .detach()
                .numpy()
            )  # each score has its own tests against numpy
            exponentials = np.exp(scores)
            expected_weights = exponentials / exponentials.sum(1, keepdims=True)
            np.testing.assert_allclose(weights[row, head, :, :length].detach().numpy(), expected_weights)
            heads[row, :, head] = expected_weights @ values
    expected = heads.reshape(BATCH, TARGET, SIZE) @ attention.output_projection.weight.detach().numpy().T
    np.testing.assert_allclose(actual.detach().numpy(), expected)
    assert (weights[~mask[:, None, None].expand_as(weights)] == 0).all()


@pytest.mark.parametrize("causal", [True, False])
def test_fused_path_equals_the_plain_one(causal: bool) -> None:
    attention = MultiHeadAttention(SIZE, HEADS)
    x = torch.randn(BATCH, SOURCE, SIZE, requires_grad=True)
    mask = padding_mask()[:, None, None].clone()
    mask[2] = False  # nothing to attend to
    if causal:
        mask = mask & torch.ones(SOURCE, SOURCE, dtype=torch.bool).tril()
    queries, key_value = attention.project(x)
    plain = attention.weights(queries, key_value.keys, mask) @ key_value.values
    fused = fused_attention(queries, key_value, mask, dropout=0.0)
    torch.testing.assert_close(fused, plain)
    assert (fused[2] == 0).all()
    direction = torch.randn_like(plain)
    (plain_gradient,) = torch.autograd.grad((plain * direction).sum(), x, retain_graph=True)
    (fused_gradient,) = torch.autograd.grad((fused * direction).sum(), x)
    torch.testing.assert_close(fused_gradient, plain_gradient)


def test_other_devices_take_the_fused_path(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def spy(queries: Tensor, *arguments: object) -> Tensor:
        calls.append(queries.device.type)
        return fused_attention(queries, *arguments)

    monkeypatch.setattr("translator.attention.multihead.fused_attention", spy)
    for device in ("cpu", "meta"):
        attention = MultiHeadAttention(SIZE, HEADS).to(device)
        x = torch.randn(BATCH, SOURCE, SIZE, device=device)
        output, _ = attention(*attention.project(x), torch.ones(SOURCE, SOURCE, dtype=torch.bool, device=device))
        assert output.shape == x.shape
    assert calls == ["meta"]


def test_heads_must_divide_the_size() -> None:
    with pytest.raises(ValueError, match="num_heads=5 must divide model_size=12"):
        MultiHeadAttention(12, 5)
