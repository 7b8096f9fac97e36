"""The best continuations of a beam without a full `topk`.

It is used on every device. Letters: A sentences, k hypotheses of each, V vocabulary, n candidates asked for.
"""

import torch
from torch import Tensor

GROUP = 16  # pieces of the vocabulary whose maximum is taken first


def top_candidates(log_probs: Tensor, scores: Tensor, num_best: int) -> tuple[Tensor, Tensor]:
    """`topk` of the sums of log_probs (A, k, V) and scores (A, k) over all k · V places, best first: values and places.

    The best elements lie in the groups with the best maxima, and there are few groups. On CPUs this is several times
    faster than `topk`, and most of the sums are never needed.
    """
    num_sentences, width, vocab_size = log_probs.shape
    num_groups = vocab_size // GROUP
    if num_groups * width <= 2 * num_best:
        return _top((log_probs + scores[:, :, None]).flatten(1), num_best)
    # The members of a group lie `num_groups` apart, so that neighbouring groups' maxima are taken at once.
    grouped = log_probs[:, :, : num_groups * GROUP].unflatten(2, (GROUP, num_groups))
    maxima = (grouped.amax(2) + scores[:, :, None]).flatten(1)  # (A, k · groups)
    best_groups = _top(maxima, num_best)[1]  # (A, n)
    firsts = best_groups // num_groups * vocab_size + best_groups % num_groups
    members = torch.arange(0, num_groups * GROUP, num_groups, device=firsts.device)
    places = (firsts[:, :, None] + members).flatten(1)  # (A, n · GROUP)
    if num_groups * GROUP < vocab_size:
        rest = torch.arange(num_groups * GROUP, vocab_size, device=firsts.device)
        rest = (rest + vocab_size * torch.arange(width, device=firsts.device)[:, None]).flatten()
        places = torch.cat([places, rest.expand(num_sentences, -1)], 1)
    values = log_probs.flatten(1).gather(1, places) + scores.gather(1, places // vocab_size)
    values, chosen = _top(values, num_best)
    return values, places.gather(1, chosen)


def _top(values: Tensor, num_best: int) -> tuple[Tensor, Tensor]:
    """`topk` of each row, which is slow where only one is asked for."""
    best = values.max(1, keepdim=True) if num_best == 1 else values.topk(num_best)
    return best.values, best.indices
