"""The contract of `translator.models.base`, for both architectures with every score and variant."""

import pytest
import torch
from torch.nn import functional as F

from support.contract_cases import MODELS, VOCAB, assert_equal, feed, lengths_to_mask, logits, make, make_batch, start
from translator.models.base import Seq2Seq
from translator.training.probe import probe


@pytest.fixture(params=MODELS)
def model(request: pytest.FixtureRequest) -> Seq2Seq:
    return make(request.param)


# --- what an output depends on


@pytest.mark.parametrize("lengths", [(5, 9, 1, 3), (4, 4), (1, 8)])
def test_padding_changes_nothing(model: Seq2Seq, lengths: tuple[int, ...]) -> None:
    source, source_mask, target_in = batch = make_batch(lengths)
    expected = logits(model, batch)
    for columns in (0, 1, 5):
        wide_mask = F.pad(source_mask, (0, columns), value=False)
        junk = torch.randint(0, VOCAB, wide_mask.shape)
        wide_source = torch.where(wide_mask, F.pad(source, (0, columns)), junk)
        wide_target = torch.cat((target_in, torch.randint(0, VOCAB, (len(lengths), columns))), 1)
        actual = logits(model, (wide_source, wide_mask, wide_target))
        assert_equal(actual[:, : target_in.shape[1]], expected)


@pytest.mark.parametrize("seed", [0, 1])
def test_a_sentence_alone_equals_the_sentence_in_a_batch(model: Seq2Seq, seed: int) -> None:
    lengths = ((6, 1, 9, 4), (2, 7, 7, 3, 5))[seed]
    source, source_mask, target_in = batch = make_batch(lengths, seed=seed)
    together = logits(model, batch)
    for i, length in enumerate(lengths):
        row = slice(i, i + 1)
        alone = logits(model, (source[row, :length], source_mask[row, :length], target_in[row]))
        assert_equal(alone, together[row])


def test_outputs_do_not_depend_on_future_tokens(model: Seq2Seq) -> None:
    source, source_mask, target_in = batch = make_batch((5, 9, 1))
    expected = logits(model, batch)
    for t in range(1, target_in.shape[1]):
        changed = target_in.clone()
        changed[:, t:] = (changed[:, t:] + 5) % VOCAB
        actual = logits(model, (source, source_mask, changed))
        assert_equal(actual[:, :t], expected[:, :t])
        assert (actual[:, t] - expected[:, t]).abs().amax(-1).min() > 1e-6  # but they depend on the current one


def test_outputs_depend_on_the_source(model: Seq2Seq) -> None:
    """Otherwise a model that ignores its input would pass all the other tests."""
    source, source_mask, target_in = batch = make_batch((5, 9, 1))
    changed = torch.where(source_mask, (source + 5) % VOCAB, source)
    moved = (logits(model, (changed, source_mask, target_in)) - logits(model, batch)).abs().amax(-1)
    assert moved.min() > 1e-6


# --- step by step against teacher forcing


def test_step_by_step_equals_teacher_forcing(model: Seq2Seq) -> None:
    batch = make_batch((5, 9, 1), target_length=11)
    with torch.no_grad():
        decoded = model(*batch, need_weights=True)
    actual, attention, _ = feed(model, start(model, batch), batch[2])
    assert_equal(actual, model.project(decoded.states).detach())
    assert_equal(attention, decoded.attention)


@pytest.mark.parametrize("num_fed", [0, 1, 3])
def test_hypotheses_of_one_sentence_are_decoded_like_sentences(model: Seq2Seq, num_fed: int) -> None:
    """After `num_fed` steps each sentence branches into three rows; each equals a sentence with that target."""
    source, source_mask, _ = batch = make_batch((5, 9, 1))
    rows = torch.arange(3).repeat_interleave(3)
    targets = make_batch((1,) * 9, seed=4)[2]  # (R, T), one per hypothesis
    targets[:, :num_fed] = targets[::3, :num_fed].repeat_interleave(3, 0)
    expected = logits(model, (source[rows], source_mask[rows], targets))
    state = start(model, batch)
    if num_fed:
        _, _, state = feed(model, state, targets[::3, :num_fed])
    actual, attention, _ = feed(model, state.select(rows), targets[:, num_fed:])
    assert_equal(actual, expected[:, num_fed:])
    assert attention.shape[0] == 9


@pytest.mark.parametrize(
    ("hypotheses", "sentences"),
    [
        ([0, 1, 2, 3, 4, 5], None),
        ([1, 0, 3, 3, 4, 5], None),
        ([5, 4, 1, 1], [2, 0]),
        ([2], [1]),
        ([2, 3, 2, 2], [1]),
        ([0, 2, 5], [0, 1, 2]),
    ],
)
def test_select_commutes_with_step(model: Seq2Seq, hypotheses: list[int], sentences: list[int] | None) -> None:
    """Also if the number of hypotheses per sentence grows or shrinks, and if some sentences finish before others."""
    state = start(model, make_batch((5, 9, 1))).select(torch.arange(3).repeat_interleave(2))
    targets = make_batch((1,) * 6, seed=2)[2]
    _, _, state = feed(model, state, targets[:, :3])
    rows = torch.tensor(hypotheses)
    kept = None if sentences is None else torch.tensor(sentences)
    stepped, attention, after = feed(model, state, targets[:, 3:5])
    selected, selected_attention, selected_after = feed(model, state.select(rows, kept), targets[rows, 3:5])
    assert_equal(selected, stepped[rows])
    assert_equal(selected_attention, attention[rows])
    assert_equal(
        feed(model, selected_after, targets[rows, 5:])[0], feed(model, after.select(rows, kept), targets[rows, 5:])[0]
    )


def test_decoding_does_not_change_a_state(model: Seq2Seq) -> None:
    """It can be used twice, with other sentences decoded in between, and gives the same result both times."""
    batch = make_batch((5, 9, 1))
    _, _, state = feed(model, start(model, batch), batch[2][:, :2])
    before, _, _ = feed(model, state, batch[2][:, 2:])
    other = make_batch((3, 4), seed=9)
    feed(model, start(model, other), other[2])
    logits(model, other)
    after, _, _ = feed(model, state, batch[2][:, 2:])
    assert torch.equal(before, after)


# --- attention and output


def test_attention_is_a_distribution_over_real_positions(model: Seq2Seq) -> None:
    source, source_mask, target_in = batch = make_batch((5, 9, 1))
    attention = model(*batch, need_weights=True).attention
    assert attention is not None
    assert attention.shape[0] == len(source)
    assert attention.shape[3:] == (target_in.shape[1], source.shape[1])
    real = source_mask[:, None, None, None, :].expand_as(attention)
    assert (attention[~real] == 0).all()
    assert (attention >= 0).all()
    assert_equal(attention.sum(-1), torch.ones_like(attention[..., 0]))
    assert model(*batch).attention is None
    assert model.step(target_in[:, 0], start(model, batch)).attention is None


def test_asking_for_attention_changes_no_output(model: Seq2Seq) -> None:
    batch = make_batch((5, 9, 1))
    assert_equal(model(*batch, need_weights=True).states, model(*batch).states)


def test_project_is_the_output_matrix(model: Seq2Seq) -> None:
    states = model(*make_batch((5, 9, 1))).states
    expected = states @ model.output_weight.T
    if model.output_bias is not None:
        expected = expected + model.output_bias
    assert_equal(model.project(states), expected)
    assert model.output_weight.shape[0] == VOCAB


def test_the_probe_accepts_the_model(model: Seq2Seq) -> None:
    batch = make_batch((5, 9, 1, 4, 4, 7))
    target_mask = lengths_to_mask(torch.tensor([7, 3, 1, 5, 2, 6]))
    assert probe(model, *batch, target_mask, tolerance=1e-9).broken == ()
