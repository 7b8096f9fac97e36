"""The best continuations against `topk` over all sums."""

import math

import pytest
import torch

from translator.kernels.topk import top_candidates


@pytest.mark.parametrize("width", [1, 3])
def test_the_fast_top_k_is_top_k(width: int) -> None:
    generator = torch.Generator().manual_seed(0)
    for vocab_size in (7, 64, 640, 1000, 6007):
        log_probs = torch.randn(5, width, vocab_size, generator=generator)
        log_probs[2, :, vocab_size // 2 :] = -math.inf
        scores = torch.randn(5, width, generator=generator)
        sums = (log_probs + scores[:, :, None]).flatten(1)
        for num_best in (1, 2, 7):
            values, places = top_candidates(log_probs, scores, num_best)
            torch.testing.assert_close(values, sums.topk(num_best).values, rtol=0, atol=0)
            torch.testing.assert_close(sums.gather(1, places), values, rtol=0, atol=0)
            assert all(len(set(row)) == num_best for row in places.tolist())
