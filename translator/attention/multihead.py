"""Multi-head attention (Vaswani et al. 2017, section 3.2.2) with any score function.

    head_i = Σ_s softmax_s(score(q W_i^Q, k_s W_i^K)) · v_s W_i^V
    MultiHead(q, k, v) = [head_1; …; head_H] W^O

Letters: B batch, T queries, S keys, D model size, H heads, D/H head size.
"""

from torch import Tensor, nn
from torch.nn import functional as F

from translator.attention.dropout import Dropout
from translator.attention.positions import RotaryPositions
from translator.attention.scores import make_score
from translator.attention.softmax import masked_softmax
from translator.kernels.attention import fused_attention
from translator.kernels.choice import use_kernels


class MultiHeadAttention(nn.Module):
    """Self-attention where keys and values come from the queries' own sequence, cross-attention where they do not."""

    def __init__(
        self,
        model_size: int,
        num_heads: int,
        *,
        score: str = "scaled_dot",
        dropout: float = 0.0,
        rotary: RotaryPositions | None = None,
    ) -> None:
        super().__init__()
        if model_size % num_heads != 0:
            raise ValueError(f"num_heads={num_heads} must divide model_size={model_size}")
        self.num_heads, self.head_size = num_heads, model_size // num_heads
        self.input_projection = nn.Linear(model_size, 3 * model_size)  # W^Q, W^K and W^V of all heads, stacked
        self.output_projection = nn.Linear(model_size, model_size)
        self.score = make_score(score, self.head_size, self.head_size, self.head_size)
        self.is_scaled_dot = score == "scaled_dot"
        self.dropout = Dropout(dropout)
        self.rotary = rotary

    def project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys prepared for the score, and values of self-attention from x (B, T, D)."""
        heads = self.input_projection(x).unflatten(-1, (3, self.num_heads, self.head_size))  # (B, T, 3, H, D/H)
        queries, keys, values = heads.permute(2, 0, 3, 1, 4)  # each (B, H, T, D/H)
        if self.rotary is not None:
            queries, keys = self.rotary(queries), self.rotary(keys)
        return queries, self.score.prepare(keys), values

    def project_both(self, x: Tensor, memory: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries of cross-attention from x (B, T, D), prepared keys and values from the memory (B, S, D)."""
        size = x.shape[-1]
        projected = F.linear(x, self.input_projection.weight[:size], self.input_projection.bias[:size])
        queries = projected.unflatten(-1, (self.num_heads, self.head_size)).transpose(1, 2)  # (B, H, T, D/H)
        return queries, *self.project_memory(memory)

    def project_memory(self, memory: Tensor) -> tuple[Tensor, Tensor]:
        """Prepared keys and values of cross-attention, needed once for each source (B, S, D)."""
        size = memory.shape[-1]
        projected = F.linear(memory, self.input_projection.weight[size:], self.input_projection.bias[size:])
        heads = projected.unflatten(-1, (2, self.num_heads, self.head_size))  # (B, S, 2, H, D/H)
        keys, values = heads.permute(2, 0, 3, 1, 4)
        return self.score.prepare(keys), values

    def forward(
        self,
        x: Tensor,  # (B, T, D), where the queries come from
        memory: Tensor | None,  # (B, S, D), where keys and values come from; None for x itself
        mask: Tensor | None,  # boolean, broadcastable to (B, H, T, S), True = may be attended to
        bias: Tensor | None = None,  # broadcastable to (B, H, T, S), added to the scores
        *,
        need_weights: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """The attended values (B, T, D) and, where asked for, the weights (B, H, T, S) before dropout."""
        queries, keys, values = self.project(x) if memory is None else self.project_both(x, memory)
        weights = None
        if self.is_scaled_dot and not need_weights and not use_kernels(queries, keys, values):
            attended = fused_attention(queries, keys, values, mask, bias, self.dropout.p if self.training else 0.0)
        else:
            scores = self.score(queries, keys)  # (B, H, T, S)
            weights = masked_softmax(scores if bias is None else scores + bias, mask)
            attended = self.dropout(weights) @ values  # (B, H, T, D/H)
        merged = attended.transpose(1, 2).flatten(2)  # (B, T, D)
        return self.output_projection(merged), weights if need_weights else None
