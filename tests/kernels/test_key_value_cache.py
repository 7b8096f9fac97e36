"""The shared cache against one that keeps a separate list of keys for each hypothesis and copies them all."""

import random

import pytest
import torch
from torch import Tensor

from translator.kernels.key_value_cache import MASKED_SCORE, CrossAttentionCache, KeyValueCache, Storage

LAYERS, HEADS, KEY, VALUE = 2, 3, 4, 5


def new_cache(num_sentences: int) -> KeyValueCache:
    shapes = [(LAYERS, num_sentences, HEADS, 1, size) for size in (KEY, VALUE)]
    return KeyValueCache(Storage(*(torch.empty(shape) for shape in shapes), 1).empty(num_sentences, 0))


def write(cache: KeyValueCache, marks: Tensor) -> KeyValueCache:
    """Appends a step: all keys and values of row r are marks[r], plus 100 per layer."""
    num_sentences = cache.storage.keys.shape[1]
    cache = cache.extended(len(marks) // num_sentences)
    for layer, (keys, values) in enumerate(cache.newest()):
        by_sentence = marks.view(num_sentences, 1, -1, 1) + 100.0 * layer  # (B, 1, K, 1)
        keys.copy_(by_sentence.expand_as(keys))
        values.copy_(-by_sentence.expand_as(values))
    return cache


def seen(cache: KeyValueCache, num_rows: int) -> list[list[tuple[int, float]]]:
    """The (position, mark) of every entry visible to each row; checks that all layers and heads agree."""
    num_sentences = cache.storage.keys.shape[1]
    bias = cache.attention_bias() + torch.zeros(num_sentences * HEADS, 1, cache.num_entries)
    bias = bias.expand(-1, num_rows // num_sentences, -1).unflatten(0, (num_sentences, HEADS)).transpose(1, 2)
    assert torch.equal(bias, bias[:, :, :1].expand_as(bias))  # (B, K, H, N), the same for all heads
    assert set(bias.unique().tolist()) <= {0.0, MASKED_SCORE}
    visible = bias[:, :, 0].flatten(0, 1) == 0  # (R, N)
    positions, rows = cache.positions().tolist(), []
    for layer, (keys, values) in enumerate(cache.layers()):
        keys = keys.view(num_sentences, HEADS, -1, KEY) - 100 * layer
        assert (keys == keys[:, :1, :, :1]).all()
        assert (values.view(num_sentences, HEADS, -1, VALUE) == -(keys[..., :1] + 100 * layer)).all()
        marks = keys[:, 0, :, 0].repeat_interleave(num_rows // num_sentences, 0)  # (R, N)
        rows.append(
            [
                [(p, m) for p, m, v in zip(positions, *row, strict=True) if v]
                for row in zip(marks.tolist(), visible.tolist(), strict=True)
            ]
        )
    assert rows[0] == rows[1]
    return rows[0]


@pytest.mark.parametrize("seed", range(20))
def test_a_hypothesis_sees_its_own_history(seed: int) -> None:
    """Forty random steps in which hypotheses are kept, duplicated and dropped, and sentences finish."""
    chance = random.Random(seed)
    num_sentences, width = 4, 1
    cache, expected = new_cache(num_sentences), [[] for _ in range(num_sentences)]
    for step in range(40):
        marks = torch.arange(len(expected)) + step * 1000.0
        cache = write(cache, marks)
        expected = [[*entries, (step, mark)] for entries, mark in zip(expected, marks.tolist(), strict=True)]
        assert seen(cache, len(expected)) == expected
        kept = sorted(
            chance.sample(range(num_sentences), num_sentences - (chance.random() < 0.1 and num_sentences > 1))
        )
        new_width = chance.choice((width, width, 1, 3))
        rows = [sentence * width + chance.randrange(width) for sentence in kept for _ in range(new_width)]
        cache = cache.select(torch.tensor(rows), torch.tensor(kept) if len(kept) < num_sentences else None)
        expected, num_sentences, width = [expected[row] for row in rows], len(kept), new_width


def test_successors_of_one_cache_are_independent() -> None:
    cache = write(new_cache(2), torch.tensor([1.0, 2.0]))
    first, second = write(cache, torch.tensor([3.0, 4.0])), write(cache, torch.tensor([5.0, 6.0]))
    assert first.storage is cache.storage
    assert seen(first, 2) == [[(0, 1.0), (1, 3.0)], [(0, 2.0), (1, 4.0)]]
    assert seen(second, 2) == [[(0, 1.0), (1, 5.0)], [(0, 2.0), (1, 6.0)]]
    assert seen(cache, 2) == [[(0, 1.0)], [(0, 2.0)]]


def test_a_relative_bias_is_given_the_steps_of_query_and_entries() -> None:
    cache = write(new_cache(2), torch.zeros(2)).select(torch.tensor([0, 0, 1, 1]))
    for _ in range(2):
        cache = write(cache, torch.zeros(4))
    heads = torch.arange(1.0, HEADS + 1).view(1, HEADS, 1, 1)
    bias = cache.attention_bias(lambda queries, keys: (keys - queries[:, None]) * heads)  # (B·H, K, N)
    expected = torch.tensor([-2.0, -1, -1, 0, 0]) * heads.view(-1, 1, 1)  # one entry, then two per step
    visible = cache.attention_bias() == 0
    assert torch.equal(bias[visible], expected.repeat(2, 2, 1)[visible])


def test_the_source_is_masked_and_selected() -> None:
    mask = torch.tensor([[True, True], [True, False], [False, False]])
    keys, values = torch.randn(LAYERS, 3, HEADS, 2, KEY), torch.randn(LAYERS, 3, HEADS, 2, VALUE)
    cache = CrossAttentionCache(Storage(keys, values, 2), mask)
    assert torch.equal(cache.bias.view(3, HEADS, 2) == 0, mask[:, None].expand(-1, HEADS, -1))
    chosen = cache.select(torch.tensor([2, 0]))
    assert torch.equal(chosen.bias.view(2, HEADS, 2) == 0, mask[[2, 0], None].expand(-1, HEADS, -1))
    for layer in range(LAYERS):
        assert torch.equal(chosen.layers[layer].keys, keys[layer, [2, 0]].flatten(0, 1))
        assert torch.equal(chosen.layers[layer].values, values[layer, [2, 0]].flatten(0, 1))
