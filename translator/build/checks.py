"""Names in a configuration that stand for something registered in the code."""

from translator.config import Config
from translator.errors import require
from translator.evaluation.metrics import quick_metrics
from translator.schema.checks import did_you_mean
from translator.training.objectives import objective_names


def check_names(config: Config) -> None:
    """Refuses names that nothing is registered under, with the nearest one that exists."""
    for option, name, known in (
        ("trainer.best_metric", config.trainer.best_metric, ["loss", *quick_metrics()]),
        ("optim.loss", config.optim.loss, objective_names()),
    ):
        require(name in known, option, name, f"not available; {did_you_mean(name, known)}")
