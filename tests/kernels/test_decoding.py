"""The kernels of a decoding step against the modules and formulas they replace."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from translator.attention.multihead import MultiHeadAttention
from translator.attention.scores import SCORES
from translator.kernels import decoding as kernels
from translator.kernels.key_value_cache import KeyValue
from translator.models.transformer_decoding import attend
from translator.models.transformer_layers import LayerOptions, Residual

SIZES = pytest.mark.parametrize("num_keys", [1, 4, 150])  # small and large products


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


def test_linear_map() -> None:
    linear, x = nn.Linear(5, 3), torch.randn(4, 5)
    torch.testing.assert_close(kernels.linear(linear.weight, linear.bias)(x), linear(x))


@pytest.mark.parametrize("norm", [nn.LayerNorm(6), nn.RMSNorm(6), nn.Identity()], ids=["layer", "rms", "none"])
def test_normalization(norm: nn.Module) -> None:
    for parameter in norm.parameters():
        nn.init.normal_(parameter)
    x = torch.randn(4, 6)
    torch.testing.assert_close(kernels.normalization(norm)(x), norm(x))


@pytest.mark.parametrize("norm_order", ["pre", "post"])
def test_residual_branch(norm_order: str) -> None:
    residual = Residual(LayerOptions(6, 8, 2, norm_order=norm_order)).eval()
    enter, leave = kernels.residual(residual.norm, residual.pre_norm)
    x, branch = torch.randn(4, 6), torch.randn(4, 6)
    torch.testing.assert_close(enter(x), residual.enter(x))
    torch.testing.assert_close(leave(x, branch.clone()), residual.leave(x, branch))


@pytest.mark.parametrize("limit", [0, 2**21])
def test_vocabulary_projection(monkeypatch: pytest.MonkeyPatch, limit: int) -> None:
    monkeypatch.setattr(kernels, "LARGEST_TRANSPOSED", limit)
    weight, x = torch.randn(11, 6), torch.randn(4, 6)
    torch.testing.assert_close(kernels.vocabulary_projection(weight)(x), x @ weight.T)


@SIZES
@pytest.mark.parametrize("num_queries", [1, 3])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 1e-5)])
@pytest.mark.parametrize("score", SCORES)
def test_the_attention_step_is_its_formula(
    use_reference: Callable[[], None], score: str, num_keys: int, num_queries: int, dtype: torch.dtype, tolerance: float
) -> None:
    attention = MultiHeadAttention(16, 2, score=score).to(dtype)
    keys, values = torch.randn(2, 6, num_keys, 8, dtype=dtype)
    queries = torch.randn(6, num_queries, 8, dtype=dtype)
    cache = KeyValue(attention.score.prepare(keys), values)
    biases = [torch.randn(shape, dtype=dtype) for shape in ((), (6, 1, num_keys), (6, num_queries, num_keys))]
    fast = [kernels.attend(attention, queries, cache, bias) for bias in biases]
    use_reference()
    expected = [attend(attention, queries, cache, bias) for bias in biases]
    torch.testing.assert_close(fast, expected, rtol=tolerance, atol=tolerance)
    if score == "scaled_dot":
        softmax = [torch.softmax(queries @ keys.transpose(1, 2) / 8**0.5 + bias, -1) for bias in biases]
        torch.testing.assert_close([weights for _, weights in fast], softmax, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("num_hypotheses", [1, 3])
def test_heads_are_split_and_merged(num_hypotheses: int) -> None:
    x = torch.randn(2 * num_hypotheses, 12)
    heads = kernels.split_heads(x, 2, 4)
    for sentence in range(2):
        for hypothesis in range(num_hypotheses):
            row = torch.cat([heads[4 * sentence + head, hypothesis] for head in range(4)])
            assert torch.equal(row, x[sentence * num_hypotheses + hypothesis])
    assert torch.equal(kernels.merge_heads(heads, 2), x)


@pytest.mark.parametrize("logits", [torch.randn(4, 9), torch.randn(9, 4).t()], ids=["contiguous", "transposed"])
def test_log_softmax_in_place(logits: Tensor) -> None:
    expected = torch.log_softmax(logits, -1)
    torch.testing.assert_close(
        kernels.log_softmax_in_place(logits.clone(memory_format=torch.preserve_format)), expected
    )
