"""Dropout (Srivastava et al. 2014)."""

from torch import Tensor, nn
from torch.nn import functional as F

from translator.kernels.choice import use_kernels
from translator.kernels.dropout import byte_dropout, byte_dropout_add


class Dropout(nn.Module):
    """Sets each element to zero with probability p while training and scales the rest by 1 / (1 - p)."""

    def __init__(self, p: float) -> None:
        super().__init__()
        if not 0 <= p < 1:
            raise ValueError(f"dropout must be at least 0 and less than 1, not {p}")
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.p == 0:
            return x
        return byte_dropout(x, self.p) if use_kernels(x) else F.dropout(x, self.p)

    def add(self, residual: Tensor, x: Tensor) -> Tensor:
        """residual + dropout(x)."""
        if not self.training or self.p == 0:
            return residual + x
        return byte_dropout_add(residual, x, self.p) if use_kernels(residual, x) else residual + F.dropout(x, self.p)

    def extra_repr(self) -> str:
        return f"p={self.p}"
