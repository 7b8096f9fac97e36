"""Reversing sentences within their lengths, against `gather` and against lists."""

import pytest
import torch

from translator.kernels.reversal import reverse, reversed_steps

LENGTHS = (5, 0, 1, 3)


def test_each_sentence_is_reversed_and_padding_stays() -> None:
    steps = reversed_steps(torch.tensor(LENGTHS), 5)
    sequence = torch.arange(20.0).view(5, 4, 1)
    columns = reverse(sequence, steps).squeeze(-1).t().tolist()
    for column, length, before in zip(columns, LENGTHS, sequence.squeeze(-1).t().tolist(), strict=True):
        assert column == before[:length][::-1] + before[length:]


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_values_and_gradients_are_those_of_gather(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    sequence = torch.randn(5, 4, 3, dtype=dtype, requires_grad=True)
    steps, direction = reversed_steps(torch.tensor(LENGTHS), 5), torch.randn(5, 4, 3, dtype=dtype)
    gathered = sequence.gather(0, steps.unsqueeze(-1).expand(-1, -1, 3))
    reversed_ = reverse(sequence, steps)
    assert torch.equal(reversed_, gathered)
    gradients = [torch.autograd.grad((values * direction).sum(), sequence)[0] for values in (reversed_, gathered)]
    assert torch.equal(*gradients)


def test_reversing_twice_is_the_identity() -> None:
    sequence, steps = torch.randn(5, 4, 3), reversed_steps(torch.tensor(LENGTHS), 5)
    assert torch.equal(reverse(reverse(sequence, steps), steps), sequence)


def test_compiles_as_one_graph_with_its_gradient() -> None:
    sequence, steps = torch.randn(5, 4, 3, requires_grad=True), reversed_steps(torch.tensor(LENGTHS), 5)
    compiled = torch.compile(reverse, fullgraph=True, backend="aot_eager")(sequence, steps)
    gradients = [torch.autograd.grad(x.square().sum(), sequence)[0] for x in (compiled, reverse(sequence, steps))]
    torch.testing.assert_close(*gradients)
