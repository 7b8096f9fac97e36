"""Every score against its formula, written as float64 numpy loops."""

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from translator.attention.scores import SCORES, GaussianScore, ScoreFunction, make_score

SIZE, HIDDEN = 5, 7


def make(name: str) -> ScoreFunction:
    torch.manual_seed(3)
    score = make_score(name, SIZE, SIZE, HIDDEN).double()
    for parameter in score.parameters():  # the initial values could hide a mistake
        parameter.data += 0.3 * torch.randn_like(parameter)
    return score


def parameter(score: ScoreFunction, name: str) -> np.ndarray:
    return dict(score.named_parameters())[name].detach().numpy()


def additive(score: ScoreFunction, q: np.ndarray, k: np.ndarray) -> float:
    hidden = parameter(score, "query_projection.weight") @ q + parameter(score, "key_projection.weight") @ k
    return float(parameter(score, "energy.weight")[0] @ np.tanh(hidden))


def dot(score: ScoreFunction, q: np.ndarray, k: np.ndarray) -> float:
    return sum(float(a * b) for a, b in zip(q, k, strict=True))


def scaled_dot(score: ScoreFunction, q: np.ndarray, k: np.ndarray) -> float:
    return dot(score, q, k) / math.sqrt(len(q))


def cosine(score: ScoreFunction, q: np.ndarray, k: np.ndarray) -> float:
    strength = math.exp(float(parameter(score, "log_strength")))
    return strength * dot(score, q, k) / math.sqrt(dot(score, q, q) * dot(score, k, k))


def gaussian(score: ScoreFunction, q: np.ndarray, k: np.ndarray) -> float:
    return -sum(float(d) ** 2 for d in (q - k) * parameter(score, "inverse_width")) / 2


FORMULAS: dict[str, Callable[[ScoreFunction, np.ndarray, np.ndarray], float]] = {
    "additive": additive,
    "dot": dot,
    "scaled_dot": scaled_dot,
    "cosine": cosine,
    "gaussian": gaussian,
}


def expected_scores(name: str, score: ScoreFunction, queries: Tensor, keys: Tensor) -> np.ndarray:
    """The scores of all (query, key) pairs for all leading indices."""
    q, k = queries.numpy(), keys.numpy()
    result = np.empty((*q.shape[:-1], k.shape[-2]))
    for index in np.ndindex(*result.shape):
        *leading, t, s = index
        result[index] = FORMULAS[name](score, q[(*leading, t)], k[(*leading, s)])
    return result


def test_every_score_has_a_formula() -> None:
    assert set(FORMULAS) == set(SCORES)


@pytest.mark.parametrize("leading", [(), (2,), (2, 3)])
@pytest.mark.parametrize("name", SCORES)
def test_score_equals_its_formula(name: str, leading: tuple[int, ...]) -> None:
    score = make(name)
    queries = torch.randn(*leading, 3, SIZE, dtype=torch.float64)
    keys = torch.randn(*leading, 4, SIZE, dtype=torch.float64)
    actual = score(queries, score.prepare(keys)).detach().numpy()
    np.testing.assert_allclose(actual, expected_scores(name, score, queries, keys), rtol=1e-10, atol=1e-12)


def test_additive_score_compares_vectors_of_different_sizes() -> None:
    score = make_score("additive", 3, 6, 4).double()
    queries, keys = torch.randn(2, 3, dtype=torch.float64), torch.randn(5, 6, dtype=torch.float64)
    actual = score(queries, score.prepare(keys)).detach().numpy()
    np.testing.assert_allclose(actual, expected_scores("additive", score, queries, keys), rtol=1e-10)


@pytest.mark.parametrize("name", SCORES)
def test_hypotheses_share_the_keys_of_their_sentence(name: str) -> None:
    """Scoring K hypotheses at once, as T = K, equals scoring each with its own copy of the keys."""
    score = make(name)
    hypotheses = torch.randn(2, 3, SIZE, dtype=torch.float64)  # (B, K, D)
    keys = torch.randn(2, 4, SIZE, dtype=torch.float64)
    together = score(hypotheses, score.prepare(keys))  # (B, K, S)
    copied = score.prepare(keys.repeat_interleave(3, dim=0))
    one_by_one = score(hypotheses.flatten(0, 1).unsqueeze(1), copied)  # (B·K, 1, S)
    torch.testing.assert_close(together.flatten(0, 1), one_by_one.squeeze(1))


@pytest.mark.parametrize("name", SCORES)
def test_heads_share_keys_by_broadcasting(name: str) -> None:
    score = make(name)
    queries = torch.randn(2, 3, 4, SIZE, dtype=torch.float64)
    keys = torch.randn(2, 1, 6, SIZE, dtype=torch.float64)
    shared = score(queries, score.prepare(keys))
    torch.testing.assert_close(shared, score(queries, score.prepare(keys.expand(2, 3, 6, SIZE))))


@pytest.mark.parametrize("name", SCORES)
def test_gradients(name: str) -> None:
    score = make(name)
    parameters = [p.detach().clone().requires_grad_() for p in score.parameters()]
    names = [n for n, _ in score.named_parameters()]
    queries = torch.randn(2, 2, SIZE, dtype=torch.float64, requires_grad=True)
    keys = torch.randn(2, 3, SIZE, dtype=torch.float64, requires_grad=True)

    class Whole(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.score = score

        def forward(self, queries: Tensor, keys: Tensor) -> Tensor:
            return self.score(queries, self.score.prepare(keys))

    whole = Whole()

    def function(queries: Tensor, keys: Tensor, *parameters: Tensor) -> Tensor:
        values = {f"score.{n}": p for n, p in zip(names, parameters, strict=True)}
        return torch.func.functional_call(whole, values, (queries, keys))

    assert torch.autograd.gradcheck(function, (queries, keys, *parameters))


@pytest.mark.parametrize("name", ["dot", "scaled_dot", "cosine", "gaussian"])
def test_scores_that_need_equal_sizes_refuse_others(name: str) -> None:
    with pytest.raises(ValueError, match=rf"score={name}.*4 and 6.*additive"):
        make_score(name, 4, 6, 8)


def test_unknown_score_is_refused_with_the_known_names() -> None:
    with pytest.raises(ValueError, match=r"score=bilinear.*additive.*gaussian"):
        make_score("bilinear", 4, 4, 4)


def test_cosine_of_a_zero_vector_is_zero_and_so_is_its_gradient() -> None:
    score = make("cosine").float()
    queries = torch.randn(3, SIZE)
    queries[1] = 0
    keys = torch.randn(4, SIZE)
    keys[2] = 0
    queries.requires_grad_()
    keys.requires_grad_()
    scores = score(queries, score.prepare(keys))
    assert torch.equal(scores[1], torch.zeros(4))
    assert torch.equal(scores[:, 2], torch.zeros(3))
    scores.sum().backward()
    assert queries.grad is not None
    assert keys.grad is not None
    assert torch.equal(queries.grad[1], torch.zeros(SIZE))
    assert torch.equal(keys.grad[2], torch.zeros(SIZE))
    assert queries.grad.isfinite().all()
    assert keys.grad.isfinite().all()
    assert queries.grad[0].abs().max() > 0


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_cosine_stays_finite_for_the_smallest_vectors(dtype: torch.dtype) -> None:
    score = make("cosine").to(dtype)
    smallest = torch.finfo(dtype).smallest_normal / torch.tensor([2.0, 4.0, 1.0, 0.25]).unsqueeze(1)
    queries = smallest.expand(4, SIZE).to(dtype).requires_grad_()
    keys = torch.randn(3, SIZE, dtype=dtype)
    scores = score(queries, score.prepare(keys))
    scores.sum().backward()
    assert queries.grad is not None
    assert scores.isfinite().all()
    assert queries.grad.isfinite().all()


def test_cosine_strength_is_positive_whatever_the_parameter() -> None:
    score = make_score("cosine", SIZE, SIZE, HIDDEN)
    same = torch.ones(1, SIZE)
    for value in (-5.0, 0.0, 3.0):
        dict(score.named_parameters())["log_strength"].data.fill_(value)
        assert score(same, score.prepare(same)).item() == pytest.approx(math.exp(value), rel=1e-5)


@pytest.mark.parametrize("name", ["scaled_dot", "cosine", "gaussian"])
def test_initial_scores_of_random_vectors_have_about_unit_variance(name: str) -> None:
    """The initial softmax is neither uniform nor saturated, whatever the size; for the Gaussian, in its q·k term."""
    torch.manual_seed(0)
    score = make_score(name, 64, 64, 64)
    scores = score(torch.randn(200, 64), score.prepare(torch.randn(200, 64)))
    if name == "gaussian":  # the norms of q and k vary too; the softmax cancels that of q
        scores = scores - scores.mean(1, keepdim=True)
    assert 0.7 < scores.std().item() < 1.5


def test_gaussian_without_parameters_has_width_one() -> None:
    score = GaussianScore(1, learnable=False)
    assert list(score.parameters()) == []
    assert score(torch.tensor([[3.0]]), score.prepare(torch.tensor([[1.0]]))).item() == pytest.approx(-2.0)


def test_gaussian_error_is_within_rounding_of_the_squares() -> None:
    """Far from the origin the expanded square loses digits, within the bound its docstring gives."""
    score = GaussianScore(16, learnable=False)
    torch.manual_seed(0)
    queries, keys = torch.randn(20, 16) * 10, torch.randn(30, 16) * 10
    exact = -(queries.double().unsqueeze(1) - keys.double()).square().sum(-1) / 2
    squares = queries.square().sum(1, keepdim=True) + keys.square().sum(1)
    error = (score(queries, score.prepare(keys)).double() - exact).abs()
    assert (error <= 4 * torch.finfo(torch.float32).eps * squares).all()


@pytest.mark.parametrize("name", SCORES)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_close_to_full(name: str, dtype: torch.dtype) -> None:
    score = make(name).float()
    queries, keys = torch.randn(2, 3, SIZE), torch.randn(2, 4, SIZE)
    full = score(queries, score.prepare(keys))
    score.to(dtype)
    half = score(queries.to(dtype), score.prepare(keys.to(dtype)))
    assert half.dtype == dtype
    torch.testing.assert_close(half.float(), full, rtol=0.1, atol=0.1)


@pytest.mark.parametrize("name", SCORES)
def test_scores_compile_as_one_graph(name: str) -> None:
    score = make(name).float()
    queries, keys = torch.randn(2, 3, SIZE), torch.randn(2, 4, SIZE)
    compiled = torch.compile(lambda q, k: score(q, score.prepare(k)), fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(queries, keys), score(queries, score.prepare(keys)))
