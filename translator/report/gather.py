"""All figures of a report, section by section: plain values, the same for the page and for JSON."""

from collections.abc import Callable, Sequence
from typing import Any

from translator.data.tokenizer import Tokenizer
from translator.languages import is_written_without_spaces
from translator.report.figures.attention import attention_figures
from translator.report.figures.calibration import calibration
from translator.report.figures.comparison import compare_runs
from translator.report.figures.curves import learning_curves
from translator.report.figures.data_card import data_card
from translator.report.figures.detectors import fault_counts, find_faults
from translator.report.figures.frequency import word_accuracy
from translator.report.figures.ngrams import unbalanced_ngrams
from translator.report.figures.reproducibility import reproducibility
from translator.report.figures.scores import corpus_scores, scores_by_length
from translator.report.figures.searching import search_figures
from translator.report.figures.sentences import sentence_list
from translator.report.material import HeldOut, RunMaterial
from translator.runs.translation import normalization

FORMAT = 1  # of the JSON file
Figures = dict[str, Any]


def gather_figures(
    held_out: HeldOut,
    runs: Sequence[RunMaterial],
    *,
    full_command: str = "",
    is_late: Callable[[], bool] = lambda: False,
) -> Figures:
    """The figures of one run or of two. A section for which the material is missing is None.

    `full_command` makes the whole report where this is the quick one. `is_late` is asked before each section; once it
    says so, the remaining ones are left out.
    """
    figures: Figures = {
        "format": FORMAT,
        "held_out": {
            "name": held_out.name,
            "num_sentences": len(held_out),
            "source_language": held_out.source_language,
            "target_language": held_out.target_language,
        },
        "full_command": full_command,
        "runs": [_figures_of_run(held_out, run, is_late) for run in runs],
        "sentences": None,
        "comparison": None,
    }
    outputs = [run.hypotheses for run in runs if run.hypotheses is not None]
    if len(outputs) == len(runs) and not is_late():
        faults = [_faults(held_out, output) for output in outputs]
        figures["sentences"] = sentence_list(held_out, outputs, faults)
    if len(outputs) == 2 and not is_late():
        trained_on = [run.training.target_words if run.training is not None else None for run in runs]
        figures["comparison"] = compare_runs(outputs[0], outputs[1], held_out, trained_on[0])
        figures["comparison"]["same_training_words"] = trained_on[0] == trained_on[1]
    figures["left_out"] = sorted(
        {name for run in figures["runs"] for name, value in run.items() if value is None and name != "training_text"}
        | ({"sentences"} if figures["sentences"] is None else set())
    )
    return figures


def _figures_of_run(held_out: HeldOut, run: RunMaterial, is_late: Callable[[], bool]) -> Figures:
    figures: Figures = {name: None if is_late() else section() for name, section in _sections(held_out, run).items()}
    counted = {"num_pairs": run.training.num_pairs, "is_whole": run.training.is_whole} if run.training else None
    return {"name": run.name, "training_text": counted, **figures}


def _faults(held_out: HeldOut, hypotheses: Sequence[str]) -> list[list[str]]:
    return find_faults(held_out.sources, held_out.references, hypotheses, held_out.target_language)


def _sections(held_out: HeldOut, run: RunMaterial) -> dict[str, Callable[[], Any]]:
    """The sections in the order of the page; each is computed when it is called."""
    hypotheses, training, forced, search = run.hypotheses, run.training, run.forced, run.search
    split = held_out.split_words
    joiner = "" if is_written_without_spaces(held_out.target_language) else " "

    def words() -> tuple[list[list[str]], list[list[str]]]:
        assert hypotheses is not None
        return [split(text) for text in hypotheses], [split(text) for text in held_out.references]

    def frequency() -> Any:
        return (
            word_accuracy(*words(), training.target_words) if hypotheses and training and training.num_pairs else None
        )

    def attention() -> Any:
        return attention_figures(forced, Tokenizer.load(run.run.tokenizer), held_out.gold) if forced else None

    def searching() -> Any:
        return search_figures(search, held_out, forced, run.length_penalty) if search and forced else None

    def data() -> Any:
        tokenizer, normalize = Tokenizer.load(run.run.tokenizer), normalization(run.config)
        return data_card(run.run.read_manifest(), held_out, training, tokenizer, normalize)

    def detectors() -> Any:
        return fault_counts(_faults(held_out, hypotheses)) if hypotheses else None

    return {
        "scores": lambda: corpus_scores(hypotheses, held_out) if hypotheses else None,
        "curves": lambda: learning_curves(run.run),
        "lengths": lambda: scores_by_length(hypotheses, held_out) if hypotheses else None,
        "frequency": frequency,
        "ngrams": lambda: unbalanced_ngrams(*words(), joiner) if hypotheses else None,
        "detectors": detectors,
        "calibration": lambda: calibration(forced) if forced else None,
        "attention": attention,
        "search": searching,
        "data": data,
        "reproducibility": lambda: reproducibility(run.run, run.config),
    }
