"""Attention maps, as images and as an HTML page."""

import functools
import html
import re
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from translator.errors import UserError
from translator.plots.fonts import fonts_for, warn_of_missing

PAGE = "maps.html"
IMAGE = re.compile(r"\d{6,}(-\d+)?\.png")
MADE_BY = "translate --attention"  # stored in every image
LARGEST_SIDE = 60.0  # inches
STYLE = """
body { margin: 2rem; font-family: system-ui, sans-serif, "Noto Sans CJK SC", "PingFang SC", "Microsoft YaHei" }
table { border-collapse: collapse; margin: 0.5rem 0 2rem }
td { width: 1.4rem; height: 1.4rem; border: 1px solid #eee }
th { font-weight: normal; white-space: pre; padding: 0 0.3rem }
th.source { writing-mode: vertical-rl; text-orientation: mixed; vertical-align: bottom; padding: 0.3rem 0 }
th.target { text-align: right }
"""


def attention_figure(source: Sequence[str], target: Sequence[str], weights: np.ndarray, title: str = "") -> Figure:
    """A map with a row per target piece and a column per source piece; the weights (T, S) are between 0 and 1."""
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
    """Draws without matplotlib's warning for each character that no installed font has."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        draw()


def _plain(text: str) -> str:
    """Text that matplotlib does not parse as a formula, with unprintable characters replaced."""
    return "".join(c if c.isprintable() else "\ufffd" for c in text).replace("$", r"\$")


class AttentionPages:
    """A folder with an image of each line's attention and a page without scripts, maps.html, with all the maps.

    Images that an earlier run made there are removed, since the text may have had more lines then.
    """

    def __init__(self, folder: Path) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for path in folder.iterdir():
                if _is_ours(path):
                    path.unlink()
            self.page = (folder / PAGE).open("w", encoding="utf-8")
        except OSError as error:
            raise UserError(f"--attention {folder}: cannot be written ({error.strerror or error})") from None
        self.folder = folder
        self.page.write(html_start("Attention"))

    def add(self, number: int, heading: str, maps: Sequence[tuple[Sequence[str], Sequence[str], np.ndarray]]) -> None:
        """Adds the maps (source pieces, target pieces, weights) of line `number`: one, or one per part of the line."""
        for part, (source, target, weights) in enumerate(maps, start=1):
            suffix = f"-{part}" if len(maps) > 1 else ""
            figure = attention_figure(source, target, weights)
            path = self.folder / f"{number:06d}{suffix}.png"
            _draw(functools.partial(figure.savefig, path, metadata={"Software": MADE_BY}))
            warn_of_missing("".join([*source, *target]), f"{self.folder / PAGE} shows them all.")
            self.page.write(html_map(f"{number}{suffix}. {heading}", source, target, weights))
        self.page.flush()

    def close(self) -> None:
        self.page.write("</body></html>\n")
        self.page.close()


def _is_ours(path: Path) -> bool:
    """Whether the name and the beginning of a file are those of an image that `AttentionPages` made."""
    if not IMAGE.fullmatch(path.name) or path.is_symlink() or not path.is_file():
        return False
    with path.open("rb") as file:
        return f"Software\0{MADE_BY}".encode("ascii") in file.read(256)


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
    """The drawn figure as (height, width, 3) bytes, the format that TensorBoard expects."""
    canvas = FigureCanvasAgg(figure)
    _draw(canvas.draw)
    return np.asarray(canvas.buffer_rgba())[..., :3].copy()
