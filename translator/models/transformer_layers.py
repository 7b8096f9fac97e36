"""The layers of a Transformer: residual branches around attention and a feed-forward network.

Letters: B sentences, S source length, T target length, D model size, F feed-forward size, H heads.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from torch import Tensor, nn
from torch.nn import functional as F

from translator.attention.dropout import Dropout
from translator.attention.multihead import MultiHeadAttention
from translator.attention.positions import RotaryPositions

NORMS: dict[str, type[nn.Module]] = {"layer": nn.LayerNorm, "rms": nn.RMSNorm}
CHOICES = {"norm_order": ("pre", "post"), "norm": tuple(NORMS), "activation": ("relu", "gelu", "swiglu")}


@dataclass(frozen=True)
class LayerOptions:
    """What all layers of a model have in common."""

    model_size: int
    feedforward_size: int
    num_heads: int
    norm_order: str = "pre"
    norm: str = "layer"
    activation: str = "relu"
    score: str = "scaled_dot"
    dropout: float = 0.1
    attention_dropout: float = 0.0
    activation_dropout: float = 0.0
    rotary: RotaryPositions | None = None

    def __post_init__(self) -> None:
        for name, choices in CHOICES.items():
            if getattr(self, name) not in choices:
                raise ValueError(f"{name} must be one of {', '.join(choices)}, not {getattr(self, name)}")

    def make_norm(self) -> nn.Module:
        return NORMS[self.norm](self.model_size, eps=1e-5)

    def make_attention(self, rotary: RotaryPositions | None = None) -> MultiHeadAttention:
        return MultiHeadAttention(
            self.model_size, self.num_heads, score=self.score, dropout=self.attention_dropout, rotary=rotary
        )


class Residual(nn.Module):
    """Around a sublayer f: norm(x + dropout(f(x))), or with pre-norm (Xiong et al. 2020) x + dropout(f(norm(x)))."""

    def __init__(self, options: LayerOptions) -> None:
        super().__init__()
        self.norm = options.make_norm()
        self.dropout = Dropout(options.dropout)
        self.pre_norm = options.norm_order == "pre"

    def enter(self, x: Tensor) -> Tensor:
        """What the sublayer is given."""
        return self.norm(x) if self.pre_norm else x

    def leave(self, x: Tensor, branch: Tensor) -> Tensor:
        """Joins the sublayer's result to what came in."""
        x = self.dropout.add(x, branch)
        return x if self.pre_norm else self.norm(x)


class FeedForward(nn.Module):
    """W_2 f(W_1 x) at every position: ReLU (Vaswani et al. 2017, equation 2), GELU or SwiGLU (Shazeer 2020, eq. 6)."""

    def __init__(self, options: LayerOptions) -> None:
        super().__init__()
        self.activation = options.activation
        num_inner = 2 if self.activation == "swiglu" else 1  # SwiGLU has a gate beside the values
        self.inner = nn.Linear(options.model_size, num_inner * options.feedforward_size)
        self.outer = nn.Linear(options.feedforward_size, options.model_size)
        self.dropout = Dropout(options.activation_dropout)

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.outer(self.dropout(self.activate(self.inner(x))))
        return result

    def activate(self, inner: Tensor) -> Tensor:
        """f, from (…, F), or (…, 2F) for SwiGLU, to (…, F); may overwrite its argument."""
        if self.activation == "relu":
            return F.relu(inner, inplace=True)  # whose gradient needs the result only
        if self.activation == "gelu":
            return F.gelu(inner)
        gate, values = inner.chunk(2, -1)
        return F.silu(gate) * values


class EncoderLayer(nn.Module):
    """Self-attention and feed-forward network (Vaswani et al. 2017, figure 1, left)."""

    def __init__(self, options: LayerOptions) -> None:
        super().__init__()
        self.self_attention = options.make_attention(options.rotary)
        self.self_residual = Residual(options)
        self.feedforward = FeedForward(options)
        self.feedforward_residual = Residual(options)

    def forward(self, x: Tensor, mask: Tensor, bias: Tensor | None = None) -> Tensor:
        """x (B, S, D), mask and bias broadcastable to (B, H, S, S)."""
        attended, _ = self.self_attention(self.self_residual.enter(x), None, mask, bias)
        x = self.self_residual.leave(x, attended)
        return self.feedforward_residual.leave(x, self.feedforward(self.feedforward_residual.enter(x)))


class DecoderLayer(nn.Module):
    """Self-attention, attention to the source and feed-forward network (Vaswani et al. 2017, figure 1, right).

    `forward` is for a whole target; `translator.models.transformer_decoding` computes the same one step at a time.
    """

    def __init__(self, options: LayerOptions) -> None:
        super().__init__()
        self.self_attention = options.make_attention(options.rotary)
        self.self_residual = Residual(options)
        self.cross_attention = options.make_attention()
        self.cross_residual = Residual(options)
        self.feedforward = FeedForward(options)
        self.feedforward_residual = Residual(options)

    def forward(
        self,
        x: Tensor,  # (B, T, D)
        self_mask: Tensor,  # broadcastable to (B, H, T, T)
        self_bias: Tensor | None,  # broadcastable to (B, H, T, T)
        memory: Tensor,  # (B, S, D)
        memory_mask: Tensor,  # (B, 1, 1, S)
        *,
        need_weights: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """The new x, and the attention to the source (B, H, T, S) where asked for."""
        attended, _ = self.self_attention(self.self_residual.enter(x), None, self_mask, self_bias)
        x = self.self_residual.leave(x, attended)
        entered = self.cross_residual.enter(x)
        attended, weights = self.cross_attention(entered, memory, memory_mask, need_weights=need_weights)
        x = self.cross_residual.leave(x, attended)
        x = self.feedforward_residual.leave(x, self.feedforward(self.feedforward_residual.enter(x)))
        return x, weights


def initialize(layers: Iterable[nn.Module], num_layers: int, norm_order: str) -> None:
    """Xavier's uniform distribution, with smaller weights where a branch joins the residual sum.

    Pre-norm sums up all branches; the scale 1/√(number of branches) keeps the sum's variance the same at any depth
    (Radford et al. 2019, section 2.3). Post-norm normalises after every branch; there the scale 1/√(layer's number)
    keeps gradients from vanishing in deep stacks (Zhang et al. 2019, depth-scaled initialisation).
    """
    for index, layer in enumerate(layers):
        branches = [module for module in layer.modules() if isinstance(module, MultiHeadAttention | FeedForward)]
        scale = (len(branches) * num_layers) ** -0.5 if norm_order == "pre" else (index + 1) ** -0.5
        for branch in branches:
            last = branch.outer if isinstance(branch, FeedForward) else branch.output_projection
            for linear in (module for module in branch.children() if isinstance(module, nn.Linear)):
                nn.init.xavier_uniform_(linear.weight, gain=scale if linear is last else 1.0)
                nn.init.zeros_(linear.bias)
