"""The beam as a tree: every continuation that a search looked at, with those it kept, ended and dropped.

A: sentences still running, here one; K: beam size; 2K candidates of each step, best first.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from translator.decoding.beam import beam_search
from translator.decoding.constraints import Constraints
from translator.decoding.hypotheses import length_penalty
from translator.ids import EOS
from translator.models.base import Seq2Seq, evaluation_mode
from translator.schema.decode import SearchOptions


class BeamRecord:
    """Collects the candidates of the search for one sentence, step by step, as nodes of a tree.

    A node is a piece: `parent` is the node of the piece before it, None at the beginning, and `score` the
    log-probability of everything up to it. It is `kept` if the search went on from it, `ended` if it is the EOS of a
    finished hypothesis, and neither if it was dropped.
    """

    def __init__(self, options: SearchOptions, name_of: Callable[[int], str]) -> None:
        self.options = options
        self.name_of = name_of
        self.nodes: list[dict[str, Any]] = []
        self._ids: list[int] = []  # of the nodes
        self._running: list[int | None] = [None]  # the node of each hypothesis of the beam
        self._step = 0

    def __call__(self, values: Tensor, parents: Tensor, pieces: Tensor, accepted: Tensor, going_on: Tensor) -> None:
        """One step of `beam_search`: values, parents and pieces (1, 2K), accepted (1, K), going_on (1, K)."""
        scores, rows, ids, ends = (part[0].tolist() for part in (values, parents, pieces, accepted))
        goes_on = going_on[0].tolist()
        penalty = float(length_penalty(self._step + 1.0, self.options))
        of_candidate: list[int | None] = []
        for rank, (score, row, piece) in enumerate(zip(scores, rows, ids, strict=True)):
            if not math.isfinite(score):  # not a candidate: forbidden
                of_candidate.append(None)
                continue
            has_ended = piece == EOS and rank < len(ends) and ends[rank]
            of_candidate.append(len(self.nodes))
            self._ids.append(piece)
            self.nodes.append(
                {
                    "id": len(self.nodes),
                    "parent": self._running[row],
                    "step": self._step,
                    "piece": self.name_of(piece),
                    "score": round(score, 4),
                    "normalized_score": round(score / penalty, 4) if has_ended else None,
                    "kept": rank in goes_on and piece != EOS,
                    "ended": has_ended,
                    "best": False,
                }
            )
        self._running = [of_candidate[rank] for rank in goes_on]
        self._step += 1

    def mark_best(self, ids: Sequence[int]) -> None:
        """Marks the path of this hypothesis, given without EOS, as far as the tree contains it."""
        children = {(node["parent"], piece): node for node, piece in zip(self.nodes, self._ids, strict=True)}
        parent: int | None = None
        for piece in [*ids, EOS]:
            node = children.get((parent, piece))
            if node is None:
                return
            node["best"] = True
            parent = node["id"]


@torch.inference_mode()
def beam_tree(
    model: Seq2Seq,
    source: Tensor,  # (1, S)
    source_mask: Tensor,  # (1, S)
    options: SearchOptions,
    name_of: Callable[[int], str],
    *,
    prefix: Sequence[int] = (),
    forbidden: Sequence[Sequence[int]] = (),
    never: Sequence[int] = (),
    best: Sequence[int] | None = None,
    before_step: Callable[[], None] = lambda: None,
) -> list[dict[str, Any]]:
    """The nodes of the search for one sentence, which is repeated for this; `best` is the output to mark."""
    record = BeamRecord(options, name_of)
    constraints = Constraints(source_mask, options, [prefix] if prefix else None, forbidden, never)
    with evaluation_mode(model):
        found = beam_search(model, source, source_mask, options, constraints, before_step, record)
    record.mark_best(found[0][0].ids if best is None else best)
    return record.nodes
