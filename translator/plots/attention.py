"""Attention maps: as a picture, and as a page that any browser shows."""

import functools
import html
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from matplotlib import font_manager
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from translator.errors import UserError

DEFAULT_FONT = "DejaVu Sans"  # comes with matplotlib
LARGEST_SIDE = 60.0  # inches
STYLE = """
body { margin: 2rem; font-family: system-ui, sans-serif, "Noto Sans CJK SC", "PingFang SC", "Microsoft YaHei" }
table { border-collapse: collapse; margin: 0.5rem 0 2rem }
td { width: 1.4rem; height: 1.4rem; border: 1px solid #eee }
th { font-weight: normal; white-space: pre; padding: 0 0.3rem }
th.source { writing-mode: vertical-rl; text-orientation: mixed; vertical-align: bottom; padding: 0.3rem 0 }
th.target { text-align: right }
"""


@functools.lru_cache(maxsize=512)
def _characters_of(font_path: str) -> frozenset[int]:
    return frozenset(font_manager.get_font(font_path).get_charmap())


def fonts_for(text: str) -> tuple[list[str], set[str]]:
    """Names of installed fonts that together can write the text, and the characters that none of them has."""
    families = [DEFAULT_FONT]
    covered = _characters_of(font_manager.findfont(DEFAULT_FONT))
    missing = {character for character in text if ord(character) not in covered and character.isprintable()}
    # The font of last resort has a box for every character and none of the characters.
    installed = {(entry.name, entry.fname) for entry in font_manager.fontManager.ttflist}
    fonts = sorted((name, path) for name, path in installed if not name.startswith("Last Resort"))
    while missing:
        best, gained = "", set[str]()
        for name, path in fonts:
            characters = _characters_of(path)
            found = {character for character in missing if ord(character) in characters}
            if len(found) > len(gained):
                best, gained = name, found
        if not gained:
            break
        families.append(best)
        missing -= gained
    return families, missing


def attention_figure(source: Sequence[str], target: Sequence[str], weights: np.ndarray, title: str = "") -> Figure:
    """A map with a row for each target piece and a column for each source piece; weights (T, S) lie between 0 and 1."""
    families, _ = fonts_for("".join([*source, *target, title]))
    size = min(LARGEST_SIDE, 2 + 0.32 * len(source)), min(LARGEST_SIDE, 1.5 + 0.28 * len(target))
    figure = Figure(figsize=size, dpi=110, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    axes.imshow(weights, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    axes.set_xticks(range(len(source)), [_plain(piece) for piece in source], rotation=90, family=families)
    axes.set_yticks(range(len(target)), [_plain(piece) for piece in target], family=families)
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    if title:
        axes.set_title(_plain(title), family=families, wrap=True)
    return figure


def _draw(draw: Callable[[], object]) -> None:
    """Draws without a warning for every character that no installed font has."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        draw()


def _plain(text: str) -> str:
    """Text that matplotlib does not take for a formula, and whose unprintable characters do no harm."""
    return "".join(c if c.isprintable() else "\ufffd" for c in text).replace("$", r"\$")


class AttentionPages:
    """A folder with a picture of every line's attention and a page, index.html, with all of them."""

    def __init__(self, folder: Path) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self.page = (folder / "index.html").open("w", encoding="utf-8")
        except OSError as error:
            raise UserError(f"--attention {folder}: cannot be written ({error.strerror or error})") from None
        self.folder = folder
        self.has_warned = False
        self.page.write(html_start("Attention"))

    def add(self, number: int, heading: str, maps: Sequence[tuple[Sequence[str], Sequence[str], np.ndarray]]) -> None:
        """The maps (source pieces, target pieces, weights) of line `number`: one, or one for each part of it."""
        for part, (source, target, weights) in enumerate(maps, start=1):
            suffix = f"-{part}" if len(maps) > 1 else ""
            figure = attention_figure(source, target, weights)
            _draw(functools.partial(figure.savefig, self.folder / f"{number:06d}{suffix}.png"))
            self._warn(fonts_for("".join([*source, *target]))[1])
            self.page.write(html_map(f"{number}{suffix}. {heading}", source, target, weights))
        self.page.flush()

    def _warn(self, missing: set[str]) -> None:
        if missing and not self.has_warned:
            self.has_warned = True
            print(
                f"Warning: no installed font has {''.join(sorted(missing)[:10])}, which the pictures show as boxes; "
                f"install one, such as Noto Sans CJK. {self.folder / 'index.html'} shows them all.",
                file=sys.stderr,
            )

    def close(self) -> None:
        self.page.write("</body></html>\n")
        self.page.close()


def html_start(title: str) -> str:
    """The beginning of a page to which maps are added one by one."""
    heading = html.escape(title)
    return (
        f'<!DOCTYPE html>\n<html><head><meta charset="utf-8"><title>{heading}</title>\n<style>{STYLE}</style></head>\n'
        f"<body><h1>{heading}</h1>\n"
        "<p>Rows: what was written. Columns: what was read. The darker, the more attention.</p>\n"
    )


def html_map(heading: str, source: Sequence[str], target: Sequence[str], weights: np.ndarray) -> str:
    """One attention map as a table, with the weights as tooltips."""
    columns = "".join(f'<th class="source">{html.escape(piece)}</th>' for piece in source)
    rows = []
    for piece, row in zip(target, weights.tolist(), strict=True):
        cells = "".join(
            f'<td style="background:rgba(8,48,107,{weight:.2f})" title="{html.escape(name)}: {weight:.2f}"></td>'
            for name, weight in zip(source, row, strict=True)
        )
        rows.append(f'<tr><th class="target">{html.escape(piece)}</th>{cells}</tr>\n')
    return f"<h2>{html.escape(heading)}</h2>\n<table><tr><th></th>{columns}</tr>\n{''.join(rows)}</table>\n"


def figure_pixels(figure: Figure) -> np.ndarray:
    """The drawn figure as (height, width, 3) bytes, as TensorBoard takes it."""
    canvas = FigureCanvasAgg(figure)
    _draw(canvas.draw)
    return np.asarray(canvas.buffer_rgba())[..., :3].copy()
