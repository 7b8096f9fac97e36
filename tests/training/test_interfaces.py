"""The loop uses only those members of a loader and a loss that the interfaces declare."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from support.training_toys import ToyLoader, make_trainer, same, weights
from translator.data.batching import Batch
from translator.models.base import Seq2Seq
from translator.training.interfaces import NO_MOMENT, Loader, Loss, LossOutput, Moment
from translator.training.objectives.cross_entropy import CrossEntropy
from translator.training.random_state import seed_everything


class BareLoader:
    """The members of the interface, and no others."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    @property
    def epoch(self) -> int:
        return self._loader.epoch

    def __iter__(self) -> Iterator[Batch]:
        return iter(self._loader)

    def state_dict(self) -> dict[str, Any]:
        return self._loader.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._loader.load_state_dict(state)


def test_any_loader_and_any_function_will_do(tmp_path: Path) -> None:
    cross_entropy = CrossEntropy(0.1)

    def function(model: Seq2Seq, batch: Any, moment: Moment = NO_MOMENT) -> LossOutput:
        return cross_entropy(model, batch, moment)

    loader: Loader = BareLoader(ToyLoader())
    loss: Loss = function
    trained = []
    for name, parts in (("usual", {}), ("bare", {"loader": loader, "loss": loss})):
        seed_everything(11)
        trainer = make_trainer(tmp_path / name, **parts)
        trainer.fit()
        trained.append(weights(trainer.model))
    assert same(*trained)
    resumed = make_trainer(tmp_path / "bare", loader=BareLoader(ToyLoader()), loss=loss)
    assert resumed.resume() == 12
    assert resumed.loader.state_dict() == loader.state_dict()
