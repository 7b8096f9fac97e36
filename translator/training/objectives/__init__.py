"""Training objectives, one module each. The configuration names the module: `optim.loss=cross_entropy`.

A module has a function `build(options) -> Loss`, which is given all options of the group `optim`.
"""

import pkgutil
from importlib import import_module

from translator.schema.training import OptimConfig
from translator.training.interfaces import Loss


def objective_names() -> list[str]:
    return [module.name for module in pkgutil.iter_modules(__path__)]


def build_loss(options: OptimConfig) -> Loss:
    loss: Loss = import_module(f"{__name__}.{options.loss}").build(options)
    return loss
