"""The decoder's recurrence of Bahdanau et al. 2015 with the additive score as one autograd function.

Left to autograd, the loop of `BahdanauLayer` is some forty small operations a step forwards and as many backwards. Here
buffers are filled in place, and whatever needs no order (the gradients of all weights and of the annotations) waits
until the loop is over and is one matrix product each. Two identities save most of the transcendental functions, of
which torch's tanh is by far the slowest:

    tanh(x) = 2 σ(2x) - 1, so with the candidate's rows of all weights doubled one σ serves all four gates;
    tanh(q + k) = 1 - 2r with r = 1 / (1 + e^{2q} e^{2k}), where e^{2k} is made once for all steps.

Letters: T steps, B sentences, S source length, E embedding size, H hidden size, A attention size.
"""

from typing import Any

import torch
from torch import Tensor

# e^{2q} and e^{2k} are finite and not zero in float32 as long as |q| and |k| are at most this. Their product may
# overflow: r is then 0 and tanh 1, as it should be.
_LARGEST_PROJECTION = 40.0


def is_applicable(inputs: Tensor, hidden: Tensor, prepared: Tensor, query_weight: Tensor) -> bool:
    """Whether the function below gives what the loop gives: (T, R, E), (R, H), (B, S, A), W_q (A, H).

    It is for whole sentences. A single step has nothing to gain, and several hypotheses for a sentence occur only
    there. The exponentials must not overflow: |q| ≤ Σ |W_q| · max |s|, and every s_t but s_0 is smaller than 1.
    """
    if inputs.shape[0] <= 1 or hidden.shape[0] != prepared.shape[0] or prepared.numel() == 0:
        return False
    with torch.no_grad():
        row_sum = torch.linalg.matrix_norm(query_weight, ord=float("inf"))
        largest_query = row_sum * _largest(hidden).clamp(min=1)
        return bool(torch.maximum(largest_query, _largest(prepared)) <= _LARGEST_PROJECTION)


def _largest(x: Tensor) -> Tensor:
    result: Tensor = torch.linalg.vector_norm(x, ord=float("inf"))
    return result


def bahdanau_recurrence(*operands: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    """From s_0 and its cell to all states (T, B, H), contexts (T, B, 2H) and the last cell (B, H).

    The operands are those of `_BahdanauRecurrence.forward`, in its order.
    """
    result: tuple[Tensor, Tensor, Tensor] = _BahdanauRecurrence.apply(*operands)
    return result


class _BahdanauRecurrence(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        inputs: Tensor,  # (T, B, E)
        hidden: Tensor,  # (B, H)
        cell: Tensor,  # (B, H)
        annotations: Tensor,  # (B, S, 2H)
        prepared: Tensor,  # (B, S, A), W_k h
        source_mask: Tensor,  # (B, S)
        dropout_mask: Tensor | None,  # (B, H), on s_{t-1} on its way to the gates
        input_weight: Tensor,  # W (4H, E)
        bias: Tensor,  # b (4H,)
        hidden_weight: Tensor,  # U (4H, H)
        context_weight: Tensor,  # C (4H, 2H)
        query_weight: Tensor,  # W_q (A, H)
        energy: Tensor,  # w_v (1, A)
    ) -> tuple[Tensor, Tensor, Tensor]:
        num_steps, num_rows, _ = inputs.shape
        doubled = [_double_candidate(weight.clone()) for weight in (input_weight, hidden_weight, context_weight, bias)]
        input_weight, hidden_weight, context_weight, bias = doubled
        gates = torch.addmm(bias, inputs.flatten(0, 1), input_weight.t()).unflatten(0, (num_steps, num_rows))
        states, cells = (start.new_empty(num_steps + 1, *start.shape) for start in (hidden, cell))
        states[0], cells[0] = hidden, cell
        squashed = torch.empty_like(cells[1:])  # tanh(c_t)
        queries = inputs.new_empty(num_steps, num_rows, len(query_weight))  # e^{2q}
        weights = inputs.new_empty(num_steps, *source_mask.shape)
        contexts = inputs.new_empty(num_steps, num_rows, annotations.shape[-1])
        keys = (2 * prepared).exp_()  # e^{2k}
        twice_query_weight, factors = 2 * query_weight, -2 * energy.squeeze(0)
        # As in `masked_softmax`: -inf where nothing may be seen, and rows in which that is everything become zero.
        any_allowed = source_mask.any(dim=-1, keepdim=True)  # (B, 1)
        fill = torch.zeros_like(weights[0]).masked_fill_(~source_mask & any_allowed, float("-inf"))
        ratios, scores = torch.empty_like(keys), torch.empty_like(fill)

        for step in range(num_steps):
            torch.mm(states[step], twice_query_weight.t(), out=queries[step]).exp_()
            _ratios(keys, queries[step], out=ratios)
            # w_v^T tanh(q + k) = Σ w_v - 2 w_v^T r, and the softmax does not see the constant.
            torch.mv(ratios.flatten(0, 1), factors, out=scores.view(-1))
            torch.softmax(scores.add_(fill), -1, out=weights[step]).mul_(any_allowed)
            torch.bmm(weights[step].unsqueeze(1), annotations, out=contexts[step].unsqueeze(1))
            gates[step].addmm_(_masked(states[step], dropout_mask), hidden_weight.t())
            gates[step].addmm_(contexts[step], context_weight.t())
            _cell_forward(gates[step], cells[step], cells[step + 1], squashed[step], states[step + 1])

        ctx.save_for_backward(
            *(inputs, annotations, keys, dropout_mask, input_weight, hidden_weight, context_weight, query_weight),
            *(energy, gates, states, cells, squashed, queries, weights, contexts),
        )
        return states[1:], contexts, cells[-1].clone()

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        inputs, annotations, keys, dropout_mask, *saved_weights = ctx.saved_tensors[:8]
        input_weight, hidden_weight, context_weight, query_weight = saved_weights
        energy, gates, states, cells, squashed, queries, weights, contexts = ctx.saved_tensors[8:]
        grad_states, grad_contexts, grad_cell = grads[0], grads[1].clone(), grads[2].clone()
        grad_gates, grad_queries = torch.empty_like(gates), torch.empty_like(queries)
        grad_hidden = torch.zeros_like(grad_cell)
        grad_keys, grad_factors = torch.zeros_like(keys), torch.zeros_like(energy[0])
        # d tanh(q + k) = 4 (r - r²); the part 4 w_v is the same for all pairs and is multiplied in outside of them.
        slope = 4 * energy.squeeze(0)  # (A,)
        slope_query_weight = slope.unsqueeze(1) * query_weight  # (A, H)
        ratios, products, scratch = torch.empty_like(keys), torch.empty_like(keys), torch.empty_like(gates[0])

        for step in reversed(range(len(gates))):
            grad_hidden += grad_states[step]
            _cell_backward(
                gates[step], cells[step], squashed[step], grad_hidden, grad_cell, out=grad_gates[step], scratch=scratch
            )
            grad_contexts[step].addmm_(grad_gates[step], context_weight)
            grad_weights = torch.bmm(grad_contexts[step].unsqueeze(1), annotations.transpose(1, 2)).squeeze(1)
            grad_scores = torch._softmax_backward_data(grad_weights, weights[step], -1, weights.dtype)  # (B, S)
            _ratios(keys, queries[step], out=ratios)
            grad_factors.addmv_(ratios.flatten(0, 1).t(), grad_scores.view(-1))
            torch.addcmul(ratios, ratios, ratios, value=-1, out=products)  # r - r²
            torch.bmm(grad_scores.unsqueeze(1), products, out=grad_queries[step].unsqueeze(1))
            grad_keys.addcmul_(grad_scores.unsqueeze(-1), products)
            grad_hidden = _masked(grad_gates[step] @ hidden_weight, dropout_mask)
            grad_hidden.addmm_(grad_queries[step], slope_query_weight)

        flat = grad_gates.flatten(0, 1)  # (T B, 4H)
        before = states[:-1]

        def weight_gradient(sequence: Tensor) -> Tensor:
            return _double_candidate(flat.t() @ sequence.flatten(0, 1))

        return (
            (flat @ input_weight).view_as(inputs),
            grad_hidden,
            grad_cell,
            torch.bmm(weights.permute(1, 2, 0), grad_contexts.transpose(0, 1)),
            grad_keys.mul_(slope),
            None,
            None,
            weight_gradient(inputs),
            _double_candidate(flat.sum(0)),
            weight_gradient(_masked(before, dropout_mask)),
            weight_gradient(contexts),
            slope.unsqueeze(1) * (grad_queries.flatten(0, 1).t() @ before.flatten(0, 1)),
            (-2 * grad_factors).unsqueeze(0),
        )


def _double_candidate(weight: Tensor) -> Tensor:
    """Doubles the third quarter of the rows (4H, …), in place. The gradient of the doubled is doubled likewise."""
    weight.chunk(4)[2].mul_(2)
    return weight


def _masked(x: Tensor, mask: Tensor | None) -> Tensor:
    return x if mask is None else x * mask


def _ratios(keys: Tensor, query: Tensor, *, out: Tensor) -> None:
    """r = 1 / (1 + e^{2q} e^{2k}): (B, S, A)."""
    torch.addcmul(keys.new_ones(()), keys, query.unsqueeze(1), out=out).reciprocal_()


def _cell_forward(gates: Tensor, cell: Tensor, new_cell: Tensor, squashed: Tensor, hidden: Tensor) -> None:
    """`lstm_cell`, with sums whose candidate is doubled. The gates become σ of themselves; the last three are results.

    c_t = σ(f) c_{t-1} + σ(i) (2 σ(2g) - 1),    h_t = σ(o) tanh(c_t)
    """
    input_gate, forget_gate, candidate, output_gate = gates.sigmoid_().chunk(4, dim=-1)
    torch.mul(forget_gate, cell, out=new_cell).addcmul_(input_gate, candidate, value=2).sub_(input_gate)
    torch.mul(new_cell, 2, out=squashed).sigmoid_().mul_(2).sub_(1)
    torch.mul(output_gate, squashed, out=hidden)


def _cell_backward(
    gates: Tensor,
    cell: Tensor,
    squashed: Tensor,
    grad_hidden: Tensor,
    grad_cell: Tensor,
    *,
    out: Tensor,
    scratch: Tensor,
) -> None:
    """From the gradients of h_t and c_t to that of the gates' sums (`out`), and of c_{t-1}, which replaces c_t's."""
    input_gate, forget_gate, candidate, output_gate = gates.chunk(4, dim=-1)
    grad_input, grad_forget, grad_candidate, grad_output = out.chunk(4, dim=-1)
    torch.mul(grad_hidden, squashed, out=grad_output)
    through = grad_hidden * output_gate
    grad_cell.add_(through).sub_(through.mul_(squashed).mul_(squashed))  # 1 - tanh²
    torch.mul(grad_cell, candidate, out=grad_input).mul_(2).sub_(grad_cell)
    torch.mul(grad_cell, cell, out=grad_forget)
    torch.mul(grad_cell, input_gate, out=grad_candidate).mul_(2)
    out.mul_(torch.addcmul(gates, gates, gates, value=-1, out=scratch))  # σ' = σ - σ²
    grad_cell.mul_(forget_gate)
