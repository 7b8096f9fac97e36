"""What TensorBoard gets: a layout for its page of custom scalars, pictures and histograms, once each."""

import io
import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.plugins.custom_scalar import layout_pb2
from tensorboard.plugins.custom_scalar.metadata import CONFIG_SUMMARY_TAG

from translator.training.board import LAYOUT, Histogram, View
from translator.training.monitor import Monitor, UpdateReport
from translator.training.updater import UpdateOutcome
from translator.training.validation_result import TextScores, ValidationResult

LENGTHS = Histogram(np.arange(5) - 0.5, np.array([0, 3, 2, 1]))


class FakeViews:
    def at_start(self) -> Mapping[str, View]:
        return {"length": LENGTHS, **self.at_validation()}

    def at_validation(self) -> Mapping[str, View]:
        return {"positions": np.zeros((4, 5, 3), np.uint8)}


def train(folder: Path, start: int, updates: range) -> None:
    """A run that is logged and validated at every update."""
    monitor = Monitor(folder, log_every=1, views=FakeViews(), stream=io.StringIO())
    monitor.start(start)
    for update in updates:
        parts, norms = {"nll": 1.0, "consistency": 2.0}, {"encoder/1": 3.0, "decoder/1": float("inf")}
        outcome = UpdateOutcome(3.0, parts, 1, 2.0, 0.0, is_finite=True, part_norms=norms)
        monitor.update(UpdateReport(update, outcome, learning_rate=0.1, progress=0.5, seconds_left=1.0))
        scores = TextScores({"bleu": 1.0, "chrf": 2.0}, {}, {"empty": 0.0})
        monitor.validation(update, ValidationResult(3.0, parts, 1, scores, [], [], 1.0), is_best=True)
    monitor.close()


def read(folder: Path) -> EventAccumulator:
    everything = dict.fromkeys(("scalars", "images", "histograms", "tensors"), 0)
    return EventAccumulator(str(folder), size_guidance=everything).Reload()


def steps(events: EventAccumulator, kind: str, name: str) -> list[int]:
    return [event.step for event in getattr(events, kind)(name)]


def charts(tags: set[str]) -> dict[str, set[str]]:
    """The tags that each chart shows, found as TensorBoard finds them: by matching from the beginning of the tag."""
    found = {}
    for category in LAYOUT.values():
        for title, (_, expressions) in category.items():
            found[title] = {tag for tag in tags for expression in expressions if re.match(expression, tag)}
    return found


def test_the_layout_is_the_one_that_tensorboard_reads(tmp_path: Path) -> None:
    train(tmp_path, 0, range(1, 2))
    (event,) = read(tmp_path).Tensors(CONFIG_SUMMARY_TAG)
    layout = layout_pb2.Layout.FromString(event.tensor_proto.string_val[0])
    assert [category.title for category in layout.category] == list(LAYOUT)
    assert [chart.title for chart in layout.category[0].chart][:5] == [
        *("loss", "BLEU and chrF of the validation set", "learning rate", "gradient norm", "target tokens per second")
    ]
    assert list(layout.category[0].chart[0].multiline.tag) == ["train/loss$", "validation/loss$"]


def test_every_curve_has_a_place_in_the_layout(tmp_path: Path) -> None:
    train(tmp_path, 0, range(1, 2))
    tags = set(read(tmp_path).Tags()["scalars"])
    shown = charts(tags)
    assert shown["loss"] == {"train/loss", "validation/loss"}
    assert shown["BLEU and chrF of the validation set"] == {"validation/bleu", "validation/chrf"}
    of_loss = {f"{split}/{name}" for split in ("train", "validation") for name in ("nll", "consistency")}
    assert shown["parts of the loss"] == of_loss
    assert shown["encoder"] == {"weights/gradient_norm/encoder/1"}
    assert tags - set().union(*shown.values()) == {"train/padding_share"}


def test_curves_sort_before_pictures(tmp_path: Path) -> None:
    """TensorBoard opens the first two groups."""
    train(tmp_path, 0, range(1, 2))
    tags = read(tmp_path).Tags()
    groups = {name.split("/")[0] for kind in ("scalars", "images", "histograms") for name in tags[kind]}
    assert sorted(groups)[:2] == ["train", "validation"]


def test_histograms_keep_their_counts(tmp_path: Path) -> None:
    train(tmp_path, 0, range(1, 2))
    value = read(tmp_path).Histograms("view/length")[0].histogram_value
    assert (value.num, value.sum, value.sum_squares) == (6, 10, 20)
    assert value.bucket_limit == [0.5, 1.5, 2.5, 3.5]
    assert value.bucket == [0, 3, 2, 1]
    assert value.min == -0.5


@pytest.mark.parametrize("checkpoint", [0, 2])
def test_a_resumed_run_shows_everything_once(tmp_path: Path, checkpoint: int) -> None:
    """Also what is drawn at the start, when the run was killed before its first checkpoint."""
    train(tmp_path, 0, range(1, 4))
    for number, path in enumerate(sorted(tmp_path.glob("events.*"))):  # files are read by name, so these come first
        path.rename(path.with_name(f"events.out.tfevents.{number:010d}"))
    train(tmp_path, checkpoint, range(checkpoint + 1, 6))
    events = read(tmp_path)
    assert steps(events, "Histograms", "view/length") == [0]
    assert steps(events, "Images", "view/positions") == [0, 1, 2, 3, 4, 5]
    for name in ("train/loss", "validation/bleu", "weights/gradient_norm/encoder/1"):
        assert steps(events, "Scalars", name) == [1, 2, 3, 4, 5]


def test_norms_that_overflowed_are_left_out(tmp_path: Path) -> None:
    train(tmp_path, 0, range(1, 2))
    assert "weights/gradient_norm/decoder/1" not in read(tmp_path).Tags()["scalars"]
