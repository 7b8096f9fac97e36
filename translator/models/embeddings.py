"""The three matrices at the edges of a translation model, which may be shared.

"target" shares the decoder's input and output (Press and Wolf 2017), "all" the source too, given a joint vocabulary.
"""

import torch
from torch import Tensor, nn

TYING = ("none", "target", "all")


class Embeddings(nn.Module):
    """Source embedding, target embedding and output projection, each (V, E)."""

    def __init__(
        self,
        source_vocab_size: int,
        target_vocab_size: int,
        size: int,
        tie: str,
        word_dropout: float = 0.0,
        bias: bool = False,
    ) -> None:
        super().__init__()
        if tie not in TYING:
            raise ValueError(f"tie_embeddings must be one of {', '.join(TYING)}, not {tie}")
        if tie == "all" and source_vocab_size != target_vocab_size:
            raise ValueError(
                f"tie_embeddings=all needs one vocabulary for both languages, not {source_vocab_size} and "
                f"{target_vocab_size} pieces; use target or none"
            )
        self.word_dropout = word_dropout
        self.spared = range(0)  # source ids whose vectors are never zeroed: tags, without which the task is unknown
        self.target = nn.Embedding(target_vocab_size, size)
        self.source = self.target if tie == "all" else nn.Embedding(source_vocab_size, size)
        self.output_weight = nn.Parameter(torch.empty(target_vocab_size, size)) if tie == "none" else self.target.weight
        self.output_bias = nn.Parameter(torch.zeros(target_vocab_size)) if bias else None
        # With this deviation the logits of a normalised state begin with a variance of one.
        for weight in (self.source.weight, self.target.weight, self.output_weight):
            nn.init.normal_(weight, std=size**-0.5)

    def of_source(self, ids: Tensor, kept: Tensor | None = None) -> Tensor:
        """Vectors (…, E) of ids (…), zero where `kept` (…) is False or, in training, where word dropout strikes."""
        if self.training and self.word_dropout > 0:
            spared = torch.rand(ids.shape, device=ids.device) >= self.word_dropout
            kept = spared if kept is None else kept & spared
        if kept is not None and self.spared:
            kept = kept | ((ids >= self.spared.start) & (ids < self.spared.stop))
        return zeroed(self.source(ids), kept)


def zeroed(vectors: Tensor, kept: Tensor | None) -> Tensor:
    return vectors if kept is None else vectors * kept.unsqueeze(-1)
