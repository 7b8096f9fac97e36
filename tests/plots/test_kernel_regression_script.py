"""The kernel-regression script draws its figure and reports that the trained width is best."""

import re
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from translator.plots.kernel_regression import Regression, draw_kernel_regression

SCRIPT = Path(__file__).parents[2] / "scripts" / "kernel_regression.py"


def test_script_draws_a_picture_and_reports_falling_losses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "new" / "picture.png"
    monkeypatch.setattr(sys, "argv", ["kernel_regression.py", "--output", str(output)])
    runpy.run_path(str(SCRIPT), run_name="__main__")
    losses = [float(text) for text in re.findall(r"loss (\d+\.\d+)", capsys.readouterr().out)]
    assert len(losses) == 3
    assert losses[0] > losses[1] > losses[2]
    assert output.read_bytes().startswith(b"\x89PNG")


def test_figure_shows_each_regression_above_its_weights() -> None:
    x = np.linspace(0, 1, 4)
    queries = np.linspace(0, 1, 6)
    regressions = [Regression(title, queries * 2, np.full((6, 4), 0.25)) for title in ("wide", "narrow")]
    figure = draw_kernel_regression(x, x * 2, queries, queries * 2, regressions)
    assert isinstance(figure, Figure)
    assert [axis.get_title() for axis in figure.axes[:2]] == ["wide", "narrow"]
    heat = figure.axes[2].collections[0]
    assert heat.get_array().shape == (4, 6)
    prediction = figure.axes[0].lines[1]
    np.testing.assert_array_equal(prediction.get_ydata(), queries * 2)
