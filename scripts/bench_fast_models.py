"""BLEU against speed: several runs, with each engine, with beam search and greedy search.

    python scripts/bench_fast_models.py RUN RUN2 … --source FILE --reference FILE [--image FILE.png]

The first run is the one that the others are compared with. Each engine has a process of its own, in which all runs take
turns within each round, and the fastest round counts. "Text" is the whole file in batches; "sentences" is one after the
other, as in a conversation.
"""

import argparse
import json
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import torch

from translator import Translator
from translator.command import exit_code, positive
from translator.evaluation.metrics import score_corpus
from translator.files.lines import read_lines

ENGINES: dict[str, dict[str, Any]] = {
    "torch": {"engine": "torch", "stop": "first"},  # the rule of CTranslate2
    "CTranslate2": {"engine": "ctranslate2"},
    "CTranslate2 int8": {"engine": "ctranslate2", "int8": True},
}


class Case(NamedTuple):
    run: str
    engine: str
    beam_size: int


class Figures(NamedTuple):
    bleu: float
    text: float  # sentences/s
    sentences: float  # sentences/s


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN")
    parser.add_argument("--source", type=Path, required=True, metavar="FILE")
    parser.add_argument("--reference", type=Path, required=True, metavar="FILE")
    parser.add_argument("--threads", type=positive, default=2, help="default: %(default)s")
    parser.add_argument("--rounds", type=positive, default=3, help="default: %(default)s")
    parser.add_argument("--single", type=positive, default=100, help="sentences translated one by one (%(default)s)")
    parser.add_argument("--batch-tokens", type=positive, default=4_096, help="default: %(default)s")
    parser.add_argument("--image", type=Path, metavar="FILE", help="also draw them")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write them")
    return parser.parse_args()


def measured(engine: str, options: argparse.Namespace) -> dict[Case, Figures]:
    torch.set_num_threads(options.threads)
    sources, references = list(read_lines(options.source)), list(read_lines(options.reference))
    translators = {
        Case(run.name, engine, beam_size): Translator.load(
            run, "cpu", beam_size=beam_size, batch_tokens=options.batch_tokens, **ENGINES[engine]
        )
        for run in options.runs
        for beam_size in (5, 1)
    }
    for translator in translators.values():
        translator.keep_memory()
    bleu = {
        case: score_corpus(one.translate(sources), references, one.direction.target, metrics=["bleu"])["bleu"]
        for case, one in translators.items()
    }
    text: dict[Case, list[float]] = {case: [] for case in translators}
    single: dict[Case, list[float]] = {case: [] for case in translators}
    for _ in range(options.rounds):
        for case, translator in translators.items():
            text[case].append(seconds_for(translator, [sources]))
            single[case].append(seconds_for(translator, [[line] for line in sources[: options.single]]))
    num_single = min(options.single, len(sources))
    return {
        case: Figures(bleu[case], len(sources) / min(text[case]), num_single / min(single[case]))
        for case in translators
    }


def seconds_for(translator: Translator, texts: list[list[str]]) -> float:
    start = time.perf_counter()
    for lines in texts:
        translator.translate(lines)
    return time.perf_counter() - start


def table(figures: dict[Case, Figures]) -> str:
    """Markdown; in brackets, how many times as fast as the first run with the same engine and beam."""
    first = next(iter(figures)).run
    lines = [
        "| run | engine | beam | BLEU | sentences/s, text | sentences/s, one by one |",
        "| --- | --- | ---: | ---: | ---: | ---: |",
    ]
    for case, found in figures.items():
        base = figures[case._replace(run=first)]
        cells = [f"{value:,.0f} ({value / basic:.2f})" for value, basic in zip(found[1:], base[1:], strict=True)]
        lines.append(f"| {case.run} | {case.engine} | {case.beam_size} | {found.bleu:.2f} | {cells[0]} | {cells[1]} |")
    return "\n".join(lines)


def draw(figures: dict[Case, Figures], path: Path) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    figure = Figure(figsize=(8, 4.5), dpi=110, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    runs = list(dict.fromkeys(case.run for case in figures))
    markers = dict(zip(ENGINES, "osD", strict=True))
    for case, found in figures.items():
        color = f"C{runs.index(case.run)}"
        filled = color if case.beam_size > 1 else "none"
        axes.plot(found.text, found.bleu, markers[case.engine], color=color, markerfacecolor=filled, markersize=9)
    handles = [(f"C{number}", "o", f"C{number}", run) for number, run in enumerate(runs)]
    handles += [("gray", marker, "gray", engine) for engine, marker in markers.items()]
    handles += [("gray", "o", "none", "hollow: greedy, filled: beam 5")]
    for color, marker, face, label in handles:
        axes.plot([], [], marker, color=color, markerfacecolor=face, label=label)
    axes.set(xscale="log", xlabel="sentences per second (whole text, two threads)", ylabel="BLEU")
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.grid(alpha=0.3)
    axes.legend(fontsize="small", loc="center left", bbox_to_anchor=(1, 0.5))
    figure.savefig(path)


def main() -> None:
    options = parse_arguments()
    figures: dict[Case, Figures] = {}
    for engine in ENGINES:
        with ProcessPoolExecutor(1, get_context("spawn")) as process:
            figures |= process.submit(measured, engine, options).result()
    print(table(figures))
    if options.json:
        options.json.write_text(json.dumps([case._asdict() | found._asdict() for case, found in figures.items()]))
    if options.image:
        draw(figures, options.image)


if __name__ == "__main__":
    sys.exit(exit_code("bench_fast_models", main))
