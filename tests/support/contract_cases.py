"""The models that must satisfy the contract, and helpers to run them.

In float64, so that a deviation of 1e-9 is a wrong mask and not a rounding error.
"""

import itertools
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

from translator.attention.scores import SCORES
from translator.models.base import Decoded, Seq2Seq, State
from translator.models.lstm import LstmSeq2Seq
from translator.models.transformer import Transformer

VOCAB = 23
BOS = 2
Batch = tuple[Tensor, Tensor, Tensor]


def lengths_to_mask(lengths: Tensor, max_length: int | None = None) -> Tensor:
    """Lengths (B,) to a mask (B, S) that is True on the first `lengths` positions of each row."""
    max_length = int(lengths.max()) if max_length is None else max_length
    return torch.arange(max_length) < lengths.unsqueeze(-1)


def transformer(**options: object) -> Seq2Seq:
    sizes = {"model_size": 16, "feedforward_size": 24, "num_heads": 2, "encoder_layers": 2, "decoder_layers": 2}
    return Transformer(VOCAB, VOCAB, **{**sizes, "dropout": 0.3, **options})  # type: ignore[arg-type]


def lstm(**options: object) -> Seq2Seq:
    sizes = {"embedding_size": 8, "hidden_size": 12, "attention_size": 10, "encoder_layers": 2, "decoder_layers": 2}
    return LstmSeq2Seq(VOCAB, VOCAB, **{**sizes, "dropout": 0.3, **options})  # type: ignore[arg-type]


MODELS: dict[str, Callable[[], Seq2Seq]] = {}
# All combinations of positions and norm order, which between them cover every score, activation, norm and tying.
for index, (positions, norm_order) in enumerate(
    itertools.product(("sinusoidal", "learned", "rotary", "none", "relative"), ("pre", "post"))
):
    options: dict[str, object] = {
        "positions": positions,
        "norm_order": norm_order,
        "score": ("scaled_dot", *SCORES)[index % 6],
        "activation": ("relu", "gelu", "swiglu")[index % 3],
        "norm": ("layer", "rms")[index // 2 % 2],
        "tie_embeddings": ("all", "target", "none")[index % 3],
        "max_positions": 6,  # shorter than the sentences below
        "attention_dropout": 0.1 * (index % 2),
        "activation_dropout": 0.1 * (index // 2 % 2),
    }
    name = "-".join(("transformer", positions, norm_order, str(options["score"])))
    MODELS[name] = lambda options=options: transformer(**options)
for score, attend in itertools.product(SCORES, ("classic", "parallel")):
    MODELS[f"lstm-{score}-{attend}"] = lambda score=score, attend=attend: lstm(score=score, attend=attend)
MODELS["lstm-shallow"] = lambda: lstm(encoder_layers=1, decoder_layers=1, tie_embeddings="none")
MODELS["lstm-parallel-shallow"] = lambda: lstm(
    encoder_layers=1, decoder_layers=1, attend="parallel", tie_embeddings="all"
)
# One of each kind of decoder, for slow tests in which the score does not matter.
KINDS = ["transformer-sinusoidal-pre-scaled_dot", "lstm-additive-classic", "lstm-additive-parallel"]
# The kind of dropout matters only in training.
TRAINING_MODELS = {
    **MODELS,
    **{
        f"lstm-{score}-{attend}-variational": lambda score=score, attend=attend: lstm(
            score=score, attend=attend, dropout_kind="variational"
        )
        for score, attend in itertools.product(SCORES, ("classic", "parallel"))
    },
}


def make(name: str) -> Seq2Seq:
    torch.manual_seed(1)
    return TRAINING_MODELS[name]().double().eval()


def make_batch(source_lengths: tuple[int, ...], target_length: int = 7, seed: int = 0) -> Batch:
    generator = torch.Generator().manual_seed(seed)
    source_mask = lengths_to_mask(torch.tensor(source_lengths), max(1, *source_lengths))
    source = torch.randint(4, VOCAB, source_mask.shape, generator=generator) * source_mask
    target_in = torch.randint(4, VOCAB, (len(source_lengths), target_length), generator=generator)
    target_in[:, 0] = BOS
    return source, source_mask, target_in


def logits(model: Seq2Seq, batch: Batch) -> Tensor:
    with torch.no_grad():
        return model.project(model(*batch).states)  # (B, T, V)


def feed(model: Seq2Seq, state: State, tokens: Tensor) -> tuple[Tensor, Tensor, State]:
    """Logits (R, T, V) and attention (R, L, H, T, S) after each token of (R, T), and the final state."""
    steps = []
    with torch.no_grad():
        for column in tokens.unbind(1):
            steps.append(model.step(column, state, need_weights=True))
            state = steps[-1].state
    attention = [step.attention for step in steps if step.attention is not None]
    return torch.stack([step.logits for step in steps], 1), torch.stack(attention, 3), state


def start(model: Seq2Seq, batch: Batch) -> State:
    with torch.no_grad():
        return model.start(model.encode(batch[0], batch[1]))


def assert_equal(actual: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(actual, expected, rtol=0, atol=1e-9)


def loss_of(model: Seq2Seq, batch: Batch, decoded: Decoded | None = None) -> Tensor:
    decoded = model(*batch) if decoded is None else decoded
    return F.cross_entropy(model.project(decoded.states).flatten(0, 1), batch[2].roll(-1, 1).flatten())
