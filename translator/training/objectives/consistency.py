"""Consistency of two passes over each pair: R-Drop (Liang et al. 2021), with cutoff SimCut (Gao et al. 2022)."""

from translator.schema.training import OptimConfig
from translator.training.consistency import ConsistencyLoss


def build(options: OptimConfig) -> ConsistencyLoss:
    return ConsistencyLoss(label_smoothing=options.label_smoothing, **vars(options.consistency))
