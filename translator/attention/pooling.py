"""Attention pooling: the mean of the values, weighted by how well their keys fit the query."""

from torch import Tensor

from translator.attention.scores import ScoreFunction
from translator.attention.softmax import masked_softmax


def attention_pooling(
    score: ScoreFunction,
    queries: Tensor,  # (…, T, Dq)
    keys: Tensor,  # (…, S, Dk)
    values: Tensor,  # (…, S, Dv)
    mask: Tensor | None = None,  # broadcasts to (…, T, S)
) -> tuple[Tensor, Tensor]:
    """f(q) = Σ_i α(q, k_i) v_i with α = softmax(score), and the weights α.

    With a Gaussian score this is the regression of Nadaraya 1964 and Watson 1964; with the additive one, the context
    vector of Bahdanau et al. 2015, equations 5 and 6; with the scaled dot, equation 1 of Vaswani et al. 2017.
    """
    weights = masked_softmax(score(queries, score.prepare(keys)), mask)  # (…, T, S)
    return weights @ values, weights
