"""The probe accepts a correct model and names the fault in incorrect ones, each broken in one deliberate way."""

import copy
from dataclasses import dataclass, replace
from typing import Self

import pytest
import torch
from torch import Tensor, nn

from support.contract_cases import lengths_to_mask
from translator.attention.softmax import masked_softmax
from translator.models.base import Decoded, Memory, Seq2Seq, State, Step
from translator.training.probe import EXTRA_COLUMNS, MAX_LENGTH, MAX_SENTENCES, ProbeError, probe

FUTURE = "no output depends on later target tokens"
SOURCE_PADDING = "no output depends on the source's padding"
TARGET_PADDING = "no output depends on the target's padding"
BATCH = "a sentence alone equals the sentence in a batch"
STEPWISE = "decoding step by step equals teacher forcing"
SELECT = "selecting rows of a state commutes with a step"
VALUE = "nothing is kept outside the state"
SUMS = "attention sums to one over real positions"
ZEROS = "attention is exactly zero on padding"
ALL = (FUTURE, SOURCE_PADDING, TARGET_PADDING, BATCH, STEPWISE, SELECT, VALUE, SUMS, ZEROS)

VOCAB, SIZE = 30, 8


@dataclass(frozen=True)
class ToyState(State):
    memory: Memory  # of B sentences
    total: Tensor  # (R, D), the sum of the embeddings fed so far
    count: int

    def select(self, rows: Tensor, sentences: Tensor | None = None) -> Self:
        memory = self.memory
        if sentences is not None:
            memory = Memory(memory.states[sentences], memory.mask[sentences])
        return replace(self, memory=memory, total=self.total[rows])


class Toy(Seq2Seq):
    """The smallest model that meets the contract: the mean of the target so far queries the source by dot products."""

    def __init__(self) -> None:
        super().__init__()
        self.source = nn.Embedding(VOCAB, SIZE)
        self.target = nn.Embedding(VOCAB, SIZE)
        self.dropout = nn.Dropout(0.5)
        self.frozen = nn.Dropout(0.5).eval()

    def encode(self, source: Tensor, source_mask: Tensor) -> Memory:
        return Memory(self.frozen(self.dropout(self.source(source))), source_mask)

    def attend(self, queries: Tensor, memory: Memory) -> tuple[Tensor, Tensor]:
        """Queries (B, T, D) to states (B, T, D) and weights (B, T, S)."""
        weights = masked_softmax(queries @ memory.states.transpose(1, 2), memory.mask.unsqueeze(1))
        return queries + weights @ memory.states, weights

    def means(self, embedded: Tensor) -> Tensor:
        return embedded.cumsum(1) / torch.arange(1, embedded.shape[1] + 1).unsqueeze(1)

    def forward(
        self,
        source: Tensor,
        source_mask: Tensor,
        target_in: Tensor,
        *,
        teacher_forcing: float = 1.0,
        need_weights: bool = False,
    ) -> Decoded:
        states, weights = self.attend(self.means(self.target(target_in)), self.encode(source, source_mask))
        return Decoded(states, weights[:, None, None] if need_weights else None)

    def project(self, states: Tensor) -> Tensor:
        return states @ self.output_weight.T

    @property
    def output_weight(self) -> Tensor:
        return self.target.weight

    @property
    def output_bias(self) -> Tensor | None:
        return None

    def start(self, memory: Memory) -> ToyState:
        return ToyState(memory, memory.states.new_zeros(len(memory.states), SIZE), 0)

    def step(self, tokens: Tensor, state: State, *, need_weights: bool = False) -> Step:
        assert isinstance(state, ToyState)
        total, count = state.total + self.target(tokens), state.count + 1
        queries = (total / count).unflatten(0, (len(state.memory.states), -1))  # (B, K, D)
        states, weights = self.attend(queries, state.memory)
        attention = weights.flatten(0, 1)[:, None, None] if need_weights else None
        return Step(self.project(states.flatten(0, 1)), replace(state, total=total, count=count), attention)


class LeaksTheNextToken(Toy):
    """A causal mask that is off by one."""

    def means(self, embedded: Tensor) -> Tensor:
        return super().means(embedded) + 0.1 * torch.cat((embedded[:, 1:], embedded[:, :1] * 0), 1)


class LeaksTheLastToken(Toy):
    """No causal mask at all, but the leak is small."""

    def means(self, embedded: Tensor) -> Tensor:
        return super().means(embedded) + 0.01 * embedded.mean(1, keepdim=True)


class IgnoresSourceMask(Toy):
    def encode(self, source: Tensor, source_mask: Tensor) -> Memory:
        return super().encode(source, torch.ones_like(source_mask))


class MasksByIdNotByMask(Toy):
    """Treats id 0 as padding, whatever the mask says: correct until another id appears there."""

    def encode(self, source: Tensor, source_mask: Tensor) -> Memory:
        return super().encode(source, source != 0)


class LowersPaddingOnly(Toy):
    """A mask of -30 where it should be minus infinity: too small to show in the outputs, too large to be zero."""

    def attend(self, queries: Tensor, memory: Memory) -> tuple[Tensor, Tensor]:
        scores = queries @ memory.states.transpose(1, 2)
        weights = torch.softmax(scores - 30.0 * ~memory.mask.unsqueeze(1), -1)
        return queries + weights @ memory.states, weights


class ReadsPaddingInTheEncoder(Toy):
    """A backward recurrent encoder that starts from the padding: the attention itself is masked correctly."""

    def encode(self, source: Tensor, source_mask: Tensor) -> Memory:
        states, mask, _ = super().encode(source, source_mask)
        return Memory(states + 0.1 * states.flip(1).cumsum(1).flip(1), mask)


class CountsTargetColumns(Toy):
    """Divides by the width of the batch, as a norm or a mean that includes padding does."""

    def means(self, embedded: Tensor) -> Tensor:
        return embedded.cumsum(1) / embedded.shape[1]


class SeesItsNeighbours(Toy):
    """What batch normalisation left in training mode does."""

    def encode(self, source: Tensor, source_mask: Tensor) -> Memory:
        states, mask, _ = super().encode(source, source_mask)
        real = (states * mask.unsqueeze(-1)).sum((0, 1)) / mask.sum().clamp(min=1)
        return Memory(states - real, mask)


class StepsDifferently(Toy):
    """A position that is off by one in the cached decoder."""

    def start(self, memory: Memory) -> ToyState:
        return replace(super().start(memory), count=1)


class KeepsCountInModule(Toy):
    """The number of steps lives on the module and not in the state."""

    count = 0

    def start(self, memory: Memory) -> ToyState:
        self.count = 0
        return super().start(memory)

    def step(self, tokens: Tensor, state: State, *, need_weights: bool = False) -> Step:
        assert isinstance(state, ToyState)
        self.count += 1
        return super().step(tokens, replace(state, count=self.count - 1), need_weights=need_weights)


class WritesIntoItsState(Toy):
    """A cache that is changed in place."""

    def step(self, tokens: Tensor, state: State, *, need_weights: bool = False) -> Step:
        assert isinstance(state, ToyState)
        result = super().step(tokens, state, need_weights=need_weights)
        assert isinstance(result.state, ToyState)
        state.total.copy_(result.state.total)
        return result


class ForgetsRows(Toy):
    """Selects sentences but leaves the hypotheses of each in their old order."""

    @dataclass(frozen=True)
    class State(ToyState):
        def select(self, rows: Tensor, sentences: Tensor | None = None) -> Self:
            return super().select(rows.sort().values, sentences)

    def start(self, memory: Memory) -> ToyState:
        return self.State(memory, memory.states.new_zeros(len(memory.states), SIZE), 0)


class ForgetsSentences(Toy):
    """Selects rows but keeps the sources of the first sentences."""

    @dataclass(frozen=True)
    class State(ToyState):
        def select(self, rows: Tensor, sentences: Tensor | None = None) -> Self:
            return super().select(rows, None if sentences is None else torch.arange(len(sentences)))

    def start(self, memory: Memory) -> ToyState:
        return self.State(memory, memory.states.new_zeros(len(memory.states), SIZE), 0)


class ReportsTooMuchAttention(Toy):
    def attend(self, queries: Tensor, memory: Memory) -> tuple[Tensor, Tensor]:
        states, weights = super().attend(queries, memory)
        return states, weights * 1.01


class ReportsNoAttention(Toy):
    def forward(self, *args: Tensor, teacher_forcing: float = 1.0, need_weights: bool = False) -> Decoded:
        return super().forward(*args, teacher_forcing=teacher_forcing)


class IsNotANumber(Toy):
    def means(self, embedded: Tensor) -> Tensor:
        return super().means(embedded) * torch.where(torch.arange(embedded.shape[1]) > 1, float("nan"), 1).unsqueeze(1)


def data(num_sentences: int = 6, source_lengths: tuple[int, ...] = (5, 12, 1, 9, 7, 3)) -> tuple[Tensor, ...]:
    generator = torch.Generator().manual_seed(0)
    lengths = torch.tensor(source_lengths[:num_sentences])
    source_mask, target_mask = lengths_to_mask(lengths), lengths_to_mask(lengths.flip(0) + 1)
    source = torch.randint(4, VOCAB, source_mask.shape, generator=generator) * source_mask
    target_in = torch.randint(4, VOCAB, target_mask.shape, generator=generator) * target_mask
    target_in[:, 0] = 2
    return source, source_mask, target_in, target_mask


def make(model: type[Seq2Seq]) -> Seq2Seq:
    torch.manual_seed(1)
    return model()


def broken(model: type[Seq2Seq]) -> set[str]:
    return {finding.invariant for finding in probe(make(model), *data()).broken}


def test_a_correct_model_is_accepted() -> None:
    report = probe(make(Toy), *data())
    report.refuse()
    assert [finding.invariant for finding in report.findings] == list(ALL)
    assert report.broken == ()
    assert str(report).count("holds") == len(ALL)


@pytest.mark.parametrize(
    ("model", "invariants"),
    [
        (LeaksTheNextToken, {FUTURE, TARGET_PADDING, BATCH, STEPWISE, SELECT}),
        (LeaksTheLastToken, {FUTURE, TARGET_PADDING, BATCH, STEPWISE, SELECT}),
        (IgnoresSourceMask, {SOURCE_PADDING, BATCH, SUMS, ZEROS}),
        (MasksByIdNotByMask, {SOURCE_PADDING}),
        (LowersPaddingOnly, {ZEROS}),
        (ReadsPaddingInTheEncoder, {SOURCE_PADDING, BATCH}),
        (CountsTargetColumns, {TARGET_PADDING, BATCH, STEPWISE, SELECT}),
        (SeesItsNeighbours, {BATCH}),
        (StepsDifferently, {STEPWISE, SELECT}),
        (KeepsCountInModule, {SELECT, VALUE}),
        (WritesIntoItsState, {SELECT, VALUE}),
        (ForgetsRows, {SELECT}),
        (ForgetsSentences, {SELECT}),
        (ReportsTooMuchAttention, {SUMS}),
        (ReportsNoAttention, {SUMS, ZEROS}),
    ],
)
def test_an_incorrect_model_is_refused_for_its_fault(model: type[Seq2Seq], invariants: set[str]) -> None:
    assert broken(model) == invariants


def test_outputs_that_are_not_numbers_are_refused() -> None:
    assert {FUTURE, STEPWISE} <= broken(IsNotANumber)


def test_the_message_says_what_is_broken_by_how_much_and_where() -> None:
    report = probe(make(SeesItsNeighbours), *data())
    with pytest.raises(
        ProbeError, match=rf"{BATCH}: is broken at row \d+, target position \d+ \(deviation \d.*allowed"
    ):
        report.refuse()
    assert issubclass(ProbeError, ValueError)


def test_the_place_is_where_the_output_moves() -> None:
    """The output of a model that looks one token ahead changes just before the cut."""
    source, source_mask, target_in, target_mask = data(2, (4, 4))
    report = probe(make(LeaksTheNextToken), source, source_mask, target_in[:, :2], target_mask[:, :2])
    future = report.findings[0]
    assert future.invariant == FUTURE
    assert future.where.endswith("target position 0")


def test_everything_is_left_as_it_was() -> None:
    model = make(Toy).train()
    model.get_submodule("frozen").eval()
    weights = copy.deepcopy(model.state_dict())
    generator = torch.get_rng_state()
    probe(model, *data()).refuse()
    assert model.training
    assert model.get_submodule("dropout").training
    assert not model.get_submodule("frozen").training
    assert torch.equal(torch.get_rng_state(), generator)
    assert all(torch.equal(value, weights[name]) for name, value in model.state_dict().items())
    assert all(parameter.grad is None for parameter in model.parameters())


def test_modes_are_restored_after_an_error() -> None:
    class Fails(Toy):
        def start(self, memory: Memory) -> ToyState:
            raise RuntimeError("as planned")

    model = make(Fails).train()
    with pytest.raises(RuntimeError, match="as planned"):
        probe(model, *data())
    assert model.training


def test_randomness_in_evaluation_is_refused_and_leaves_the_generator_alone() -> None:
    class AlwaysDrops(Toy):
        def encode(self, source: Tensor, source_mask: Tensor) -> Memory:
            states, mask, _ = super().encode(source, source_mask)
            return Memory(nn.functional.dropout(states, 0.5, training=True), mask)

    model = make(AlwaysDrops)
    generator = torch.get_rng_state()
    assert BATCH in {finding.invariant for finding in probe(model, *data()).broken}
    assert torch.equal(torch.get_rng_state(), generator)


@pytest.mark.parametrize("lengths", [(7,), (1,), (4, 4, 4), (0, 3)])
def test_small_batches_and_batches_without_padding(lengths: tuple[int, ...]) -> None:
    probe(make(Toy), *data(len(lengths), lengths)).refuse()
    report = probe(make(IgnoresSourceMask), *data(len(lengths), lengths))
    assert SOURCE_PADDING in {finding.invariant for finding in report.broken}  # columns of padding were added


def test_a_first_token_alone_can_be_probed() -> None:
    source, source_mask, target_in, target_mask = data()
    assert probe(make(Toy), source, source_mask, target_in[:, :1], target_mask[:, :1]).broken == ()


def test_only_a_few_short_sentences_are_probed() -> None:
    shapes = []

    class Watched(Toy):
        def encode(self, source: Tensor, source_mask: Tensor) -> Memory:
            shapes.append(tuple(source.shape))
            return super().encode(source, source_mask)

    lengths = tuple(range(20, 120))
    probe(make(Watched), *data(len(lengths), lengths)).refuse()
    assert max(rows for rows, _ in shapes) == MAX_SENTENCES
    assert max(columns for _, columns in shapes) == MAX_LENGTH + EXTRA_COLUMNS


def test_the_tolerance_decides() -> None:
    model, batch = make(LeaksTheLastToken), data()
    deviation = probe(model, *batch).findings[0].deviation
    assert not probe(model, *batch, tolerance=deviation / 2).findings[0].holds
    assert probe(model, *batch, tolerance=deviation * 2).findings[0].holds


@pytest.mark.usefixtures("bfloat16_products")
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
def test_other_precisions(dtype: torch.dtype) -> None:
    probe(make(Toy).to(dtype), *data()).refuse()
    assert BATCH in {finding.invariant for finding in probe(make(SeesItsNeighbours).to(dtype), *data()).broken}
