"""Heads of a Transformer: recorded weights, roles and removal, each compared with an independent computation."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sacrebleu
import torch
from torch import Tensor

from translator.atlas.figures.head_removal import Head, all_heads, curve_numbers, removal_figures, without_heads
from translator.atlas.figures.head_roles import head_roles, role_of
from translator.atlas.figures.heads import measure_heads
from translator.atlas.figures.held_out import encoded_pairs, sample, tokenizer_of
from translator.atlas.figures.recorded_attention import RecordedPair, attention_modules, record
from translator.atlas.material import TrainedRun
from translator.build.atlas_command import load_trained_run
from translator.errors import UserError
from translator.evaluation.alignment import GoldAlignment
from translator.ids import BOS, EOS
from translator.models.transformer import Transformer

PAIRS = [([7, 9, 12, EOS], [5, 6, EOS]), ([8, EOS], [9, 4, 11, 10, EOS])]


@pytest.fixture(scope="module")
def model() -> Transformer:
    torch.manual_seed(3)
    made = Transformer(20, 20, 12, 16, 3, encoder_layers=2, decoder_layers=2, dropout=0.2)
    for parameter in made.parameters():
        parameter.data.mul_(2)
    return made


def numpy_weights(model: Transformer, ids: list[int]) -> "np.ndarray[Any, Any]":
    """The weights (H, S, S) of the first encoder layer, in float64, from the formulas."""
    layer: Any = model.encoder[0]
    attention, norm = layer.self_attention, layer.self_residual.norm
    embeddings = model.embeddings.source.weight.detach().double().numpy()
    size = embeddings.shape[1]
    x = embeddings[ids] * math.sqrt(size)
    for position in range(len(ids)):
        for pair in range(0, size, 2):
            angle = position / 10000 ** (pair / size)
            x[position, pair] += math.sin(angle)
            x[position, pair + 1] += math.cos(angle)
    centred = x - x.mean(-1, keepdims=True)
    x = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + norm.eps)
    x = x * norm.weight.detach().numpy() + norm.bias.detach().numpy()
    matrix, bias = (part.detach().double().numpy() for part in attention.input_projection.parameters())
    result = []
    for head in range(attention.num_heads):
        rows = slice(head * attention.head_size, (head + 1) * attention.head_size)
        queries = x @ matrix[:size][rows].T + bias[:size][rows]
        keys = x @ matrix[size : 2 * size][rows].T + bias[size : 2 * size][rows]
        powers = np.exp(queries @ keys.T / math.sqrt(attention.head_size))
        result.append(powers / powers.sum(-1, keepdims=True))
    return np.array(result)


def test_recorded_weights_are_those_of_the_formulas(model: Transformer) -> None:
    """Also where the sentence was padded, and without the dropout of training."""
    found = list(record(model.train(), PAIRS))
    for pair, (source, target) in zip(found, PAIRS, strict=True):
        np.testing.assert_allclose(pair.weights["encoder"][0], numpy_weights(model, source), atol=1e-5)
        alone = model.eval()(torch.tensor([source]), torch.ones(1, len(source), dtype=torch.bool),
                             torch.tensor([[BOS, *target[:-1]]]), need_weights=True).attention  # fmt: skip
        np.testing.assert_allclose(pair.weights["cross"], alone[0].detach().numpy(), atol=1e-5)
        assert pair.weights["decoder"].shape == (2, 3, len(target), len(target))
        assert np.allclose(pair.weights["decoder"].sum(-1), 1, atol=1e-5)
        assert np.all(np.triu(pair.weights["decoder"], 1) == 0)
    assert model.encoder[0].self_attention._forward_hooks == {}  # nothing is left behind


@contextmanager
def muted(model: Transformer, heads: list[Head]) -> Iterator[None]:
    """Another way to remove heads: their part of what enters the output projection becomes zero."""
    handles = []
    for stack, layer, number in heads:
        module = attention_modules(model)[stack][layer]

        def zero(_: Any, args: tuple[Tensor], module: Any = module, number: int = number) -> tuple[Tensor]:
            kept = torch.ones(module.num_heads, module.head_size)
            kept[number] = 0
            return (args[0] * kept.flatten(),)

        handles.append(module.output_projection.register_forward_pre_hook(zero))
    yield
    for handle in handles:
        handle.remove()


def test_a_removed_head_is_missing_from_the_sum(model: Transformer) -> None:
    """Against multi-head attention written out by hand, without that head."""
    attention = without_heads(model, [Head("encoder", 1, 2)]).encoder[1].self_attention
    original: Any = model.encoder[1].self_attention
    x = torch.randn(2, 5, 12)
    queries, keys, values = original.input_projection(x).chunk(3, -1)
    total = original.output_projection.bias.expand(2, 5, 12).clone()
    for head in (0, 1):
        part = slice(4 * head, 4 * head + 4)
        weights = torch.softmax(queries[..., part] @ keys[..., part].transpose(1, 2) / 2, -1)
        total += weights @ values[..., part] @ original.output_projection.weight[:, part].T
    torch.testing.assert_close(attention(x, None, None)[0], total, atol=1e-5, rtol=1e-4)


def greedy(model: Transformer, source: list[int], longest: int) -> list[int]:
    """Greedy search by whole forward passes."""
    written = [BOS]
    ids = torch.tensor([source])
    while len(written) <= longest:
        states = model(ids, torch.ones_like(ids, dtype=torch.bool), torch.tensor([written])).states
        logits = model.project(states[0, -1])
        logits[[0, 2]] = float("-inf")  # padding and BOS are never written
        written.append(int(logits.argmax()))
        if written[-1] == EOS:
            break
    return [piece for piece in written[1:] if piece != EOS]


@pytest.mark.slow
def test_bleu_without_heads_is_that_of_a_search_without_them(with_two_sentences: TrainedRun) -> None:
    trained = with_two_sentences
    (held_out, _), model = sample(trained, 2, "--run"), trained.translator.model
    assert isinstance(model, Transformer)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    figures = removal_figures(trained.translator, held_out, curve_points=3)
    assert all(torch.equal(before[name], tensor) for name, tensor in model.state_dict().items())
    heads = all_heads(model)
    assert [Head(one["stack"], one["layer"], one["number"]) for one in figures["singles"]] == heads

    def bleu(removed: list[Head]) -> float:
        tokenizer, options = tokenizer_of(trained), trained.translator.options
        texts = []
        with torch.inference_mode(), muted(model, removed):
            for source in tokenizer.encode_source(held_out.sources):
                longest = int(options.max_length_ratio * len(source)) + options.max_length_extra
                texts.append(tokenizer.decode_target([greedy(model, source, longest)])[0])
        return sacrebleu.corpus_bleu(texts, [held_out.references], force=True).score

    assert figures["bleu"] == pytest.approx(bleu([]))
    for head, one in list(zip(heads, figures["singles"], strict=True))[::4]:
        assert one["bleu"] == pytest.approx(bleu([head]))
    order = [Head(*head) for head in figures["order"]]
    assert sorted(order) == sorted(heads)
    losses = {head: one["bleu"] for head, one in zip(heads, figures["singles"], strict=True)}
    assert [losses[head] for head in order] == sorted(losses.values(), reverse=True)
    assert [number for number, _ in figures["curve"]] == [0, len(heads) // 2, len(heads)]
    for number, value in figures["curve"]:
        assert value == pytest.approx(bleu(order[:number]))


def test_the_points_of_the_curve() -> None:
    assert curve_numbers(4, None) == curve_numbers(4, 9) == [0, 1, 2, 3, 4]
    assert curve_numbers(48, 25) == list(range(0, 49, 2))
    assert curve_numbers(5, 3)[0] == 0
    assert curve_numbers(5, 3)[-1] == 5


def one_hot(queries: int, keys: list[int], num_keys: int) -> "np.ndarray[Any, Any]":
    result = np.zeros((queries, num_keys), dtype=np.float32)
    result[np.arange(queries), keys] = 1
    return result


def test_heads_made_by_hand_get_their_roles(trained: TrainedRun) -> None:
    tokenizer = tokenizer_of(trained)
    source, target = tokenizer.encode_source(["A man reads ."])[0], tokenizer.encode_target(["Ein Mann liest ."])[0]
    num_source, num_target = len(source), len(target) + 1
    positions = np.arange(num_source)
    even = np.full((num_source, num_source), 1 / num_source, dtype=np.float32)
    encoder = np.stack([
        one_hot(num_source, np.maximum(positions - 1, 0), num_source),
        one_hot(num_source, positions, num_source),
        one_hot(num_source, np.minimum(positions + 1, num_source - 1), num_source),
        one_hot(num_source, [num_source - 1] * num_source, num_source),
        even,
    ])  # fmt: skip
    decoder = np.stack([
        one_hot(num_target, np.maximum(np.arange(num_target) - 1, 0), num_target),
        one_hot(num_target, [0] * num_target, num_target),
    ])  # fmt: skip
    even_cross = np.full((num_target, num_source), 1 / num_source, dtype=np.float32)
    cross = np.stack([one_hot(num_target, [0] * num_target, num_source), even_cross])
    weights = {"encoder": encoder[None], "decoder": decoder[None], "cross": cross[None]}
    everything = GoldAlignment(frozenset({(0, n) for n in range(4)}), frozenset({(0, n) for n in range(4)}))
    found = head_roles([RecordedPair(source, [*target, EOS], weights)], tokenizer, [everything])
    assert [one["role"] for one in found["encoder"][0]] == ["previous", "same", "next", "end", "diffuse"]
    assert [one["role"] for one in found["decoder"][0]] == ["previous", "begin"]
    assert [one["role"] for one in found["cross"][0]] == ["alignment", "diffuse"]
    assert found["encoder"][0][4]["spread"] == pytest.approx(1)
    assert found["encoder"][0][4]["shares"]["next"] == pytest.approx(1 / num_source)
    without_gold = head_roles([RecordedPair(source, [*target, EOS], weights)], tokenizer, None)
    assert "alignment" not in without_gold["cross"][0][0]["shares"]


def test_shares_against_loops(trained: TrainedRun) -> None:
    """Averages over all pieces of several sentences, not over sentences."""
    held_out, lines = sample(trained, 4, "--run")
    assert trained.held_out is not None
    assert held_out.sources == [trained.held_out.sources[line - 1] for line in lines]
    pairs = list(record(trained.translator.model, encoded_pairs(trained, held_out)))  # type: ignore[arg-type]
    found = head_roles(pairs, tokenizer_of(trained), None)
    previous, ends, spreads = [], [], []
    for pair in pairs:
        grid = pair.weights["encoder"][0, 1].astype(np.float64)
        last = len(grid) - 1
        previous += [grid[t, t - 1] for t in range(1, last)]
        ends += [grid[t, last] for t in range(last)]
        spreads += [-sum(w * math.log(w) for w in grid[t] if w > 0) / math.log(len(grid)) for t in range(last)]
    one = found["encoder"][0][1]
    assert one["shares"]["previous"] == pytest.approx(np.mean(previous))
    assert one["shares"]["end"] == pytest.approx(np.mean(ends))
    assert one["spread"] == pytest.approx(np.mean(spreads), abs=1e-5)


def test_the_rule() -> None:
    assert role_of({"same": 0.41, "next": 0.45}, 0.9) == "next"
    assert role_of({"same": 0.39}, 0.75) == "diffuse"
    assert role_of({"same": 0.39}, 0.74) == "mixed"


def test_all_figures_of_a_run(head_figures: dict[str, Any]) -> None:
    figures = head_figures
    assert figures["held_out"] == "test"
    assert len(figures["removal"]["singles"]) == 2 * (1 + 2 + 2)
    for maps in figures["maps"].values():
        for one in maps:
            rows = [[int(number) for number in row.split()] for row in one["percent"][0][1]]
            assert np.array(rows).shape == (len(one["target"]), len(one["source"]))
            assert np.all(np.abs(np.array(rows).sum(1) - 100) <= len(one["source"]) / 2)


def test_a_run_without_sentences_is_refused(trained: TrainedRun, small_lstm: Path) -> None:
    gone = TrainedRun(trained.folder, trained.config, trained.translator, None)
    with pytest.raises(UserError, match="sets are gone"):
        measure_heads(gone, quick=True)
    with pytest.raises(UserError, match="give it as --lstm-run"):
        load_trained_run("--run", small_lstm, "transformer")
