"""Every model in training, on unusual sources, on other devices and dtypes, and compiled."""

from collections.abc import Callable

import pytest
import torch

from support.contract_cases import (
    KINDS,
    MODELS,
    TRAINING_MODELS,
    assert_equal,
    feed,
    logits,
    loss_of,
    lstm,
    make,
    make_batch,
    start,
    transformer,
)
from translator.attention.scores import SCORES
from translator.models.base import Seq2Seq

# Compiling takes seconds, and trainer.compile is for Transformers: one always runs, all others in the slow tests.
COMPILED = [name if name == KINDS[0] else pytest.param(name, marks=pytest.mark.slow) for name in TRAINING_MODELS]


@pytest.fixture(params=MODELS)
def model(request: pytest.FixtureRequest) -> Seq2Seq:
    return make(request.param)


# --- training


@pytest.mark.parametrize("name", TRAINING_MODELS)
def test_every_parameter_receives_a_gradient(name: str) -> None:
    model = make(name).train()
    loss_of(model, make_batch((5, 9, 1))).backward()
    without = [
        name for name, parameter in model.named_parameters() if parameter.grad is None or not parameter.grad.any()
    ]
    assert without == []
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters() if parameter.grad is not None)


def test_padding_does_not_affect_the_gradient(model: Seq2Seq) -> None:
    """The gradient of a batch is that of its sentences, whatever the padding contains."""
    source, source_mask, target_in = make_batch((5, 9, 1))
    gradients = []
    for junk in (0, 7):
        model.zero_grad()
        loss_of(model, (source.masked_fill(~source_mask, junk), source_mask, target_in)).backward()
        gradients.append({name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None})
    assert gradients[0].keys() == gradients[1].keys()
    for name, gradient in gradients[0].items():
        assert_equal(gradients[1][name], gradient)


def test_state_dict_round_trip(model: Seq2Seq, request: pytest.FixtureRequest) -> None:
    batch = make_batch((5, 9, 1))
    torch.manual_seed(77)
    other = MODELS[request.node.callspec.params["model"]]().double().eval()
    assert not torch.allclose(logits(other, batch), logits(model, batch))
    other.load_state_dict(model.state_dict())
    assert torch.equal(logits(other, batch), logits(model, batch))


@pytest.mark.parametrize("name", TRAINING_MODELS)
def test_evaluation_is_deterministic_and_training_follows_the_seed(name: str) -> None:
    model = make(name)
    batch = make_batch((5, 9, 1))
    assert torch.equal(logits(model, batch), logits(model, batch))
    model.train()
    assert not torch.allclose(logits(model, batch), logits(model, batch))
    torch.manual_seed(3)
    first = logits(model, batch)
    torch.manual_seed(3)
    assert torch.equal(first, logits(model, batch))


@pytest.mark.parametrize("name", ["transformer-sinusoidal-pre-scaled_dot", "lstm-additive-parallel"])
def test_models_that_see_the_whole_target_refuse_to_sample(name: str) -> None:
    with pytest.raises(ValueError, match="teacher_forcing"):
        make(name)(*make_batch((5, 9, 1)), teacher_forcing=0.5)


# --- unusual sources


def test_a_source_without_any_word(model: Seq2Seq) -> None:
    """A fully masked source gets no attention, has finite outputs and gradients, and does not affect the others."""
    source, source_mask, target_in = make_batch((5, 0, 3))
    decoded = model(source, source_mask, target_in, need_weights=True)
    assert decoded.attention is not None
    assert (decoded.attention[1] == 0).all()
    neighbours = [0, 2]
    expected = logits(model, (source[neighbours], source_mask[neighbours], target_in[neighbours]))
    assert_equal(model.project(decoded.states)[neighbours], expected)
    stepped, _, _ = feed(model, start(model, (source, source_mask, target_in)), target_in)
    assert_equal(stepped, model.project(decoded.states))
    loss = loss_of(model, (source, source_mask, target_in), decoded)
    loss.backward()
    assert loss.isfinite()
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters() if parameter.grad is not None)


@pytest.mark.parametrize("lengths", [(0,), (0, 0), (1,), (1, 1)])
def test_batches_of_only_the_shortest_sources(model: Seq2Seq, lengths: tuple[int, ...]) -> None:
    batch = make_batch(lengths, target_length=1)
    assert logits(model, batch).isfinite().all()
    assert_equal(feed(model, start(model, batch), batch[2])[0], logits(model, batch))


LONG: dict[str, Callable[[], Seq2Seq]] = {
    **{
        f"transformer-{positions}": lambda positions=positions: transformer(
            positions=positions, num_heads=1, encoder_layers=1, decoder_layers=1, max_positions=64
        )
        for positions in ("sinusoidal", "learned", "rotary", "relative", "none")
    },
    **{f"lstm-{score}": lambda score=score: lstm(score=score) for score in SCORES},
    "lstm-parallel": lambda: lstm(attend="parallel"),
}


@pytest.mark.parametrize("name", LONG)
def test_a_source_of_five_thousand_tokens(name: str) -> None:
    model = LONG[name]().eval()
    batch = make_batch((5000,), target_length=3)
    expected = logits(model, batch)
    assert expected.isfinite().all()
    actual, attention, _ = feed(model, start(model, batch), batch[2])
    torch.testing.assert_close(actual, expected, rtol=0, atol=1e-4)
    torch.testing.assert_close(attention.sum(-1), torch.ones_like(attention[..., 0]), rtol=0, atol=1e-4)


# --- devices, precision, compilation


def test_meta_device(request: pytest.FixtureRequest, model: Seq2Seq) -> None:
    with torch.device("meta"):
        abstract = MODELS[request.node.callspec.params["model"]]()
    batch = tuple(tensor.to("meta") for tensor in make_batch((5, 9, 1)))
    loss = loss_of(abstract, batch)  # type: ignore[arg-type]
    loss.backward()
    assert loss.device.type == "meta"
    assert all(parameter.grad is not None for parameter in abstract.parameters())
    assert {name: value.shape for name, value in abstract.state_dict().items()} == {
        name: value.shape for name, value in model.state_dict().items()
    }


@pytest.mark.usefixtures("bfloat16_products")
@pytest.mark.parametrize("name", KINDS)
def test_bfloat16(name: str) -> None:
    model, batch = make(name).float(), make_batch((5, 0, 9))
    full = logits(model, batch)
    half = logits(model.bfloat16(), batch)
    assert half.dtype == torch.bfloat16
    torch.testing.assert_close(half.float(), full, rtol=0.1, atol=0.1)


@pytest.mark.parametrize("name", COMPILED)
def test_training_forward_is_one_graph(name: str) -> None:
    """The forward pass with dropout has no graph break in any variant."""
    torch._dynamo.reset()
    model, batch = make(name).train(), make_batch((2, 3), target_length=3)
    states = torch.compile(model, fullgraph=True, backend="eager")(*batch).states
    assert states.isfinite().all()


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
def test_compiled_model_and_its_gradients_equal_the_eager_ones(name: str) -> None:
    torch._dynamo.reset()
    batch = make_batch((2, 3), target_length=3)
    eager, model = make(name), make(name)
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    expected, actual = loss_of(eager, batch), loss_of(model, batch, compiled(*batch))
    expected.backward()
    actual.backward()
    assert_equal(actual, expected)
    for (parameter_name, parameter), other in zip(model.named_parameters(), eager.parameters(), strict=True):
        assert parameter.grad is not None, parameter_name
        assert other.grad is not None, parameter_name
        assert_equal(parameter.grad, other.grad)
