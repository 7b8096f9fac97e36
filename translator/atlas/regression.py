"""The smallest example of attention: noisy samples of a function, regression with a kernel, its width learned."""

import torch
from torch import Tensor

from translator.attention.pooling import attention_pooling
from translator.attention.scores import GaussianScore, ScoreFunction

LARGEST_X = 5.0
NUM_EXAMPLES = 80
NOISE = 0.5


def true_function(x: Tensor) -> Tensor:
    return 2 * torch.sin(x) + x**0.8


def make_examples(num_examples: int, noise: float, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Ascending x (S, 1) and y (S, 1), the true function plus Gaussian noise."""
    x = (torch.rand(num_examples, 1, generator=generator) * LARGEST_X).sort(dim=0).values
    return x, true_function(x) + noise * torch.randn(num_examples, 1, generator=generator)


def leave_one_out_loss(score: ScoreFunction, x: Tensor, y: Tensor, mask: Tensor | None = None) -> Tensor:
    """The mean squared error when each example is predicted from all the others.

    The mask stops an example from attending to itself; otherwise the best kernel would be infinitely narrow.
    """
    others = ~torch.eye(len(x), dtype=torch.bool)  # (S, S)
    predictions, _ = attention_pooling(score, x, x, y, others if mask is None else others & mask)
    return (predictions - y).square().mean()


def gaussian(width: float) -> GaussianScore:
    """A Gaussian kernel of this width that is not trained; infinitely wide, all scores are equal: average pooling."""
    score = GaussianScore(1, learnable=False)
    score.inverse_width.fill_(1 / width)
    return score


def train_width(x: Tensor, y: Tensor) -> GaussianScore:
    """The width that best predicts each example from the others."""
    score = GaussianScore(1)
    optimizer = torch.optim.LBFGS(score.parameters(), max_iter=100, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = leave_one_out_loss(score, x, y)
        loss.backward()
        return loss

    optimizer.step(closure)
    return score
