"""What reaches TensorBoard and the terminal."""

import errno
import io
import math
import os
import re
import struct
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.summary.writer.record_writer import RecordWriter
from torch.utils.tensorboard import SummaryWriter

from translator.training.event_log import EventLog
from translator.training.monitor import Monitor, UpdateReport, format_seconds, model_summary
from translator.training.updater import UpdateOutcome
from translator.training.validation_result import Sample, TextScores, ValidationResult


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def report(update: int, loss_sum: float = 30.0, num_tokens: int = 10) -> UpdateReport:
    return UpdateReport(
        update=update,
        outcome=UpdateOutcome(
            loss_sum=loss_sum,
            parts={"nll": loss_sum / 2, "consistency": loss_sum / 4},
            num_tokens=num_tokens,
            gradient_norm=2.0,
            padding_share=0.25,
            is_finite=True,
        ),
        learning_rate=update / 1000,
        progress=update / 10,
        seconds_left=100.0,
    )


def result(**rates: float) -> ValidationResult:
    return ValidationResult(
        loss=2.5,
        parts={"nll": 2.0, "consistency": 0.5},
        num_tokens=100,
        scores=TextScores({"bleu": 31.5, "chrf": 55.25}, {"bleu": "signature"}, rates),
        samples=[Sample("eine Katze", "a cat", "a cap")],
        images=[np.zeros((8, 9, 3), np.uint8)],
        seconds=3.0,
    )


def read(folder: Path) -> EventAccumulator:
    events = EventAccumulator(str(folder), size_guidance={"tensors": 0, "scalars": 0})
    events.Reload()
    return events


def scalars(events: EventAccumulator, name: str) -> list[tuple[int, float]]:
    return [(event.step, event.value) for event in events.Scalars(name)]


def test_tensorboard_gets_everything(tmp_path: Path) -> None:
    monitor = Monitor(tmp_path, log_every=2, texts={"model": "a summary"}, stream=io.StringIO())
    monitor.start(0)
    monitor.update(report(1, loss_sum=30.0, num_tokens=10))
    monitor.update(report(2, loss_sum=10.0, num_tokens=30))
    monitor.validation(2, result(empty=0.0), is_best=True)
    monitor.finish({"model.kind": "lstm", "seed": 1, "betas": [0.9, 0.98]}, {"test/bleu": 33.0}, {"BLEU": "33.0"})
    monitor.close()
    events = read(tmp_path)
    assert scalars(events, "train/loss") == [(2, 1.0)], "a mean over tokens, not over updates"
    assert scalars(events, "train/nll") == [(2, 0.5)]
    assert scalars(events, "train/consistency") == [(2, 0.25)]
    assert scalars(events, "train/perplexity")[0][1] == pytest.approx(np.exp(0.5))
    assert scalars(events, "train/learning_rate")[0][1] == pytest.approx(0.002)
    assert scalars(events, "train/gradient_norm") == [(2, 2.0)]
    assert scalars(events, "train/padding_share") == [(2, 0.25)]
    assert scalars(events, "train/tokens_per_second")[0][1] > 0
    assert scalars(events, "validation/bleu") == [(2, 31.5)]
    assert scalars(events, "validation/chrf") == [(2, 55.25)]
    assert scalars(events, "validation/loss") == [(2, 2.5)]
    assert scalars(events, "validation/nll") == [(2, 2.0)]
    assert scalars(events, "validation/consistency") == [(2, 0.5)]
    assert scalars(events, "validation/outputs_empty") == [(2, 0.0)]
    assert scalars(events, "test/bleu")[0][1] == 33.0
    assert events.Images("view/attention/1")[0].width == 9
    text = events.Tensors("samples/1/text_summary")[0].tensor_proto.string_val[0].decode()
    assert all(part in text for part in ("eine Katze", "a cat", "a cap"))
    assert "a summary" in events.Tensors("model/text_summary")[0].tensor_proto.string_val[0].decode()
    assert "_hparams_/session_start_info" in events.summary_metadata


def test_points_beyond_a_checkpoint_disappear_after_resuming(tmp_path: Path) -> None:
    for first in (0, 2):
        monitor = Monitor(tmp_path, log_every=1, stream=io.StringIO())
        monitor.start(first)
        for update in range(first + 1, first + 5):
            monitor.update(report(update, loss_sum=10.0 * (first + 1)))
        monitor.close()
    assert scalars(read(tmp_path), "train/loss") == [(1, 1.0), (2, 1.0), (3, 3.0), (4, 3.0), (5, 3.0), (6, 3.0)]


def everything(folder: Path, stream: io.StringIO) -> None:
    """Everything a run does with its monitor."""
    monitor = Monitor(folder, log_every=1, texts={"model": "a summary"}, stream=stream)
    monitor.start(0)
    monitor.update(report(1))
    monitor.before_checkpoint()
    monitor.validation(1, result(empty=0.0), is_best=True)
    monitor.before_checkpoint()
    monitor.finish({"seed": 1}, {"test/bleu": 33.0}, {"BLEU": "33.0"})
    monitor.close()


@pytest.mark.parametrize("name", ["__init__", "add_scalar", "add_text", "add_image", "add_hparams", "flush", "close"])
def test_a_full_disk_ends_the_log_but_not_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    def full(*arguments: object, **options: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    stream = io.StringIO()
    monkeypatch.setattr(SummaryWriter, name, full)
    everything(tmp_path / "events", stream)
    problem = f"could not write to {tmp_path / 'events'}: No space left on device."
    assert stream.getvalue().count(problem) == 1, "said once"
    assert "update 1  10%" in stream.getvalue()
    assert "BLEU  33.0" in stream.getvalue()


def test_a_disk_that_fills_up_behind_the_writer_is_noticed_without_a_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """TensorBoard writes in a separate thread."""

    def full(*arguments: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    stream = io.StringIO()
    monkeypatch.setattr(RecordWriter, "write", full)
    everything(tmp_path / "events", stream)
    assert stream.getvalue().count("Training goes on without TensorBoard") == 1
    assert capfd.readouterr().err == ""


def test_a_folder_that_cannot_be_written_ends_only_the_log(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    stream = io.StringIO()
    everything(tmp_path / "file" / "events", stream)
    assert stream.getvalue().count("Training goes on without TensorBoard") == 1


def test_nothing_is_written_after_a_failure(tmp_path: Path) -> None:
    said: list[str] = []
    log = EventLog(tmp_path, said.append, purge_step=None)
    written: list[str] = []

    def fail(writer: SummaryWriter) -> None:
        raise OSError(errno.EIO, "Input/output error")

    log.write(lambda writer: written.append("before"))
    log.write(fail)
    log.write(lambda writer: written.append("after"))
    log.flush()
    log.close()
    assert written == ["before"]
    assert said == [f"could not write to {tmp_path}: Input/output error. Training goes on without TensorBoard"]


def test_a_gradient_that_overflowed_leaves_no_hole_in_the_curve(tmp_path: Path) -> None:
    """float16's scaler skips such an update; an infinite norm would make the mean of the window infinite."""
    monitor = Monitor(tmp_path, log_every=2, stream=io.StringIO())
    monitor.start(0)
    for update, norm in enumerate((math.inf, 3.0, math.inf, math.nan, 1.0, 2.0), start=1):
        shown = report(update)
        monitor.update(replace(shown, outcome=replace(shown.outcome, gradient_norm=norm)))
    monitor.close()
    assert scalars(read(tmp_path), "train/gradient_norm") == [(2, 3.0), (6, 1.5)]


def test_plain_lines_without_a_terminal() -> None:
    stream = io.StringIO()
    monitor = Monitor(None, log_every=3, stream=stream)
    monitor.start(0)
    for update in range(1, 7):
        monitor.update(report(update))
    monitor.validation(6, result(empty=0.5, copied=0.1), is_best=False)
    monitor.close()
    lines = stream.getvalue().splitlines()
    assert lines[0].startswith("update 3  30%  loss 3.000  ")
    assert "lr 3.00e-03" in lines[0]
    assert "1m40s left" in lines[0]
    assert lines[1].startswith("update 6")
    assert lines[2] == "update 6: validation loss 2.500  perplexity 7.39  BLEU 31.50  chrF 55.25  in 3.0s"
    assert lines[3] == "  warning: 50% of the translations are empty"
    assert len(lines) == 4


def test_a_bar_on_a_terminal() -> None:
    stream = Terminal()
    monitor = Monitor(None, log_every=1, stream=stream)
    monitor.start(0)
    monitor.update(report(5))
    monitor.notify("something happened")
    monitor.finish({}, {}, {"test BLEU": "33.0", "time": "5s"})
    monitor.close()
    shown = stream.getvalue()
    assert "update 5" in shown
    assert "50%" in shown
    assert "loss 3.000" in shown
    assert "something happened\n" in shown
    assert shown.count("\n") == 3, "the bar itself never makes a new line"
    assert "test BLEU  33.0\ntime       5s\n" in shown


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="opens a Linux terminal")
def test_the_bar_tells_the_time_left_within_80_columns() -> None:
    import fcntl
    import pty
    import termios

    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    with os.fdopen(theirs, "w", encoding="utf-8") as stream:
        monitor = Monitor(None, log_every=10_000, stream=stream)
        monitor.start(0)
        monitor.update(replace(report(1_234_567, loss_sum=123.456), progress=0.5, seconds_left=45_000))
        shown = ""
        while "update" not in shown:  # a terminal delivers the output in pieces
            shown += os.read(ours, 10_000).decode()
        monitor.close()
    os.close(ours)
    drawn = next(line for line in shown.split("\r") if "update" in line)
    assert re.match(r" 50%\|.{10}\| update 1234567  12h30m left  loss 12\.346  [\d,]+ tokens/s  ", drawn)
    assert len(drawn) <= 80


def test_other_ranks_only_print_notices(tmp_path: Path) -> None:
    stream = io.StringIO()
    monitor = Monitor(tmp_path / "events", log_every=1, rank=1, stream=stream)
    monitor.start(0)
    monitor.update(report(1))
    monitor.validation(1, result(), is_best=True)
    monitor.finish({}, {}, {"a": "b"})
    monitor.notify("out of memory")
    monitor.close()
    assert stream.getvalue() == "rank 1: out of memory\n"
    assert not (tmp_path / "events").exists()


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.84, "0.8s"), (45, "45s"), (60, "1m00s"), (200, "3m20s"), (3720, "1h02m"), (-1, "0.0s")]
)
def test_durations(seconds: float, text: str) -> None:
    assert format_seconds(seconds) == text


def test_summary_counts_shared_weights_once() -> None:
    from support.training_toys import VOCAB_SIZE, ToyModel

    total = VOCAB_SIZE * 12 + VOCAB_SIZE + 12 * 12 + 12 + 24
    assert f"{total:,}" in model_summary(ToyModel())
