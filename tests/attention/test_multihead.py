"""Multi-head attention against torch.nn.MultiheadAttention and against the formula."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from translator.attention import multihead
from translator.attention.multihead import MultiHeadAttention
from translator.attention.positions import RelativePositionBias
from translator.attention.scores import SCORES
from translator.kernels.attention import fused_attention

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
    actual, weights = ours(queries, memory, mask[:, None, None], need_weights=True)
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
    actual, _ = ours(x, None, mask)
    torch.testing.assert_close(actual, expected)


@pytest.mark.parametrize("with_bias", [False, True])
@pytest.mark.parametrize("score", SCORES)
def test_every_score_equals_the_formula_head_by_head(score: str, with_bias: bool) -> None:
    attention = MultiHeadAttention(SIZE, HEADS, score=score)
    for projection in (attention.input_projection, attention.output_projection):
        nn.init.zeros_(projection.bias)  # the formula below has no bias
    x, memory = torch.randn(BATCH, TARGET, SIZE), torch.randn(BATCH, SOURCE, SIZE)
    mask = padding_mask()
    bias = torch.randn(HEADS, TARGET, SOURCE) if with_bias else None
    actual, weights = attention(x, memory, mask[:, None, None], bias, need_weights=True)
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
            )  # checked against numpy in test_scores.py
            if bias is not None:
                scores = scores + bias[head, :, :length].numpy()
            exponentials = np.exp(scores)
            expected_weights = exponentials / exponentials.sum(1, keepdims=True)
            np.testing.assert_allclose(weights[row, head, :, :length].detach().numpy(), expected_weights)
            heads[row, :, head] = expected_weights @ values
    expected = heads.reshape(BATCH, TARGET, SIZE) @ attention.output_projection.weight.detach().numpy().T
    np.testing.assert_allclose(actual.detach().numpy(), expected)
    assert (weights[~mask[:, None, None].expand_as(weights)] == 0).all()


@pytest.mark.parametrize("with_bias", [False, True])
@pytest.mark.parametrize("causal", [True, False])
def test_fused_path_equals_the_plain_one(monkeypatch: pytest.MonkeyPatch, causal: bool, with_bias: bool) -> None:
    attention = MultiHeadAttention(SIZE, HEADS)
    x = torch.randn(BATCH, SOURCE, SIZE, requires_grad=True)
    mask = padding_mask()[:, None, None].clone()
    mask[2] = False  # fully masked
    if causal:
        mask = mask & torch.ones(SOURCE, SOURCE, dtype=torch.bool).tril()
    bias = torch.randn(1, HEADS, SOURCE, SOURCE) if with_bias else None
    plain, _ = attention(x, None, mask, bias)
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)  # as on a GPU
    fused, _ = attention(x, None, mask, bias)
    torch.testing.assert_close(fused, plain)
    direction = torch.randn_like(plain)
    (plain_gradient,) = torch.autograd.grad((plain * direction).sum(), x, retain_graph=True)
    (fused_gradient,) = torch.autograd.grad((fused * direction).sum(), x)
    torch.testing.assert_close(fused_gradient, plain_gradient)


def test_other_devices_take_the_fused_path(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def spy(queries: Tensor, *arguments: Any) -> Tensor:
        calls.append(queries.device.type)
        return fused_attention(queries, *arguments)

    monkeypatch.setattr(multihead, "fused_attention", spy)
    for device in ("cpu", "meta"):
        attention = MultiHeadAttention(SIZE, HEADS).to(device)
        x = torch.randn(BATCH, SOURCE, SIZE, device=device)
        output, _ = attention(x, None, torch.ones(SOURCE, SOURCE, dtype=torch.bool, device=device))
        assert output.shape == x.shape
    assert calls == ["meta"]


@pytest.mark.parametrize("causal", [True, False])
def test_relative_positions_equal_a_loop(causal: bool) -> None:
    """softmax_s(q_t·k_s / √(D/H) + b_h(s - t)) v_s, in scalar float64 loops."""
    attention = MultiHeadAttention(SIZE, HEADS)
    relative = RelativePositionBias(SIZE, HEADS, bidirectional=not causal)
    nn.init.normal_(relative.weight)
    x = torch.randn(BATCH, SOURCE, SIZE)
    allowed = torch.ones(SOURCE, SOURCE, dtype=torch.bool)
    allowed = allowed.tril() if causal else allowed
    actual, _ = attention(x, None, allowed, relative.within(SOURCE))
    queries, keys, values = (part.detach().numpy() for part in attention.project(x))
    weight, exact = relative.weight.detach().numpy(), 16 if causal else 8  # every distance here has a separate bucket
    merged = np.zeros((BATCH, SOURCE, SIZE))
    for b, h, t in np.ndindex(BATCH, HEADS, SOURCE):
        exponentials, total = {}, 0.0
        for s in range(t + 1 if causal else SOURCE):
            bucket = t - s if s <= t else 2 * exact + s - t
            score = sum(queries[b, h, t] * keys[b, h, s]) / np.sqrt(SIZE // HEADS) + weight[bucket, h]
            exponentials[s] = np.exp(score)
            total += exponentials[s]
        head = sum(e / total * values[b, h, s] for s, e in exponentials.items())
        merged[b, t, h * SIZE // HEADS : (h + 1) * SIZE // HEADS] = head
    expected = attention.output_projection(torch.from_numpy(merged))
    torch.testing.assert_close(actual, expected, rtol=1e-10, atol=1e-10)


def test_heads_must_divide_the_size() -> None:
    with pytest.raises(ValueError, match="num_heads=5 must divide model_size=12"):
        MultiHeadAttention(12, 5)
