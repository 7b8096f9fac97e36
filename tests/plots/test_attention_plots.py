import warnings
from pathlib import Path

import numpy as np
import pytest
from matplotlib import font_manager

from translator.errors import UserError
from translator.plots import fonts
from translator.plots.attention import AttentionPages, attention_figure, figure_pixels, html_map
from translator.plots.fonts import fonts_for, warn_of_missing

SOURCE, TARGET = ["▁Two", "▁dogs", "</s>"], ["两", "$x$", "\x01", "</s>"]
WEIGHTS = np.array([[0.9, 0.1, 0.0], [0.0, 1.0, 0.0], [0.2, 0.3, 0.5], [0.0, 0.0, 1.0]])


def test_darker_means_more_attention() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figure = attention_figure(SOURCE, TARGET, WEIGHTS)
        pixels = figure_pixels(figure)
    assert pixels.ndim == 3
    assert pixels.dtype == np.uint8
    (image,) = figure.axes[0].get_images()
    np.testing.assert_array_equal(image.get_array(), WEIGHTS)
    light, dark = (np.mean(image.cmap(image.norm(weight))[:3]) for weight in (0.1, 0.9))
    assert dark < light
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == ["两", r"\$x\$", "\ufffd", "</s>"]


def test_fonts_are_chosen_by_the_characters_they_have(monkeypatch: pytest.MonkeyPatch) -> None:
    assert fonts_for("Grüße ▁") == (["DejaVu Sans"], set())
    has = {"DejaVuSans.ttf": "abc", "DejaVuSerif.ttf": "狗猫", "cmr10.ttf": "狗", "LastResortHE-Regular.ttf": "狗猫鸟"}
    monkeypatch.setattr(fonts, "_characters_of", lambda path: frozenset(map(ord, has.get(Path(path).name, ""))))
    assert fonts_for("a狗猫鸟b") == (["DejaVu Sans", "DejaVu Serif"], {"鸟"})


def test_a_font_installed_after_matplotlib_made_its_list_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    new = font_manager.findfont("DejaVu Serif")
    known = [entry for entry in font_manager.fontManager.ttflist if entry.name == "DejaVu Sans"]
    monkeypatch.setattr(font_manager.fontManager, "ttflist", known)
    monkeypatch.setattr(font_manager, "findSystemFonts", lambda: [new, __file__])  # the second is not a font
    has = {Path(new).name: "狗"}
    monkeypatch.setattr(fonts, "_characters_of", lambda path: frozenset(map(ord, has.get(Path(path).name, ""))))
    fonts._add_new_fonts.cache_clear()
    assert fonts_for("狗猫") == (["DejaVu Sans", "DejaVu Serif"], {"猫"})


def test_a_missing_font_file_has_no_characters(tmp_path: Path) -> None:
    assert fonts._characters_of(str(tmp_path / "gone.ttf")) == frozenset()


def test_missing_characters_are_reported_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(fonts, "fonts_for", lambda text: ([], set(text) & {"狗", "猫"}))
    monkeypatch.setattr(fonts, "_warned", set())
    warn_of_missing("dog")
    assert capsys.readouterr().err == ""
    warn_of_missing("狗", "See there.")
    assert "no installed font has 狗" in (message := capsys.readouterr().err)
    assert message.endswith("See there.\n")
    warn_of_missing("狗猫")
    assert capsys.readouterr().err == ""


def test_the_page_shows_text_as_text() -> None:
    page = html_map("1. a < b", ["<s>", 'x"y'], ["&"], np.array([[0.25, 0.75]]))
    assert "&lt;s&gt;" in page
    assert 'title="x&quot;y: 0.75"' in page
    assert page.count("<td") == 2
    assert "rgba(8,48,107,0.25)" in page


def test_a_folder_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="--attention"):
        AttentionPages(tmp_path / "file")
