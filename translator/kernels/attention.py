"""torch's fused attention, which never holds the weights (B, H, T, S) in memory: the fast form of devices but CPUs."""

import torch
from torch import Tensor
from torch.nn import functional as F


def fused_attention(
    queries: Tensor,  # (B, H, T, D)
    keys: Tensor,  # (B, H, S, D)
    values: Tensor,  # (B, H, S, D)
    mask: Tensor | None,  # boolean, broadcastable to (B, H, T, S)
    bias: Tensor | None,  # broadcastable to (B, H, T, S)
    dropout: float,
) -> Tensor:
    """softmax(q^T k / √D + bias) v over what the mask allows: (B, H, T, D).

    The mask becomes an additive one, which the kernels take faster than a boolean. Where a row has nothing to attend to
    the kernels may give NaN; such rows are zero here, as they are with `masked_softmax`.
    """
    zero = queries.new_zeros(())
    added = None if bias is None else bias.to(queries.dtype)
    if mask is not None:
        added = torch.where(mask, zero if added is None else added, torch.finfo(queries.dtype).min)
    attended = F.scaled_dot_product_attention(queries, keys, values, attn_mask=added, dropout_p=dropout)
    return attended if mask is None else torch.where(mask.any(-1, keepdim=True), attended, zero)
