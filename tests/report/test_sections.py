"""The wording of the sections, for given figures."""

from typing import Any

from translator.report.sections import data, model, parts, quality, sentences


def figures(**runs: dict[str, Any]) -> dict[str, Any]:
    """Figures of runs in which everything else is left out."""
    names = ("scores", "curves", "lengths", "frequency", "ngrams", "detectors")
    names += ("calibration", "attention", "search", "data", "reproducibility")
    return {
        "held_out": {"name": "test", "num_sentences": 4, "source_language": "en", "target_language": "de"},
        "full_command": "make it whole",
        "runs": [{"name": name, **dict.fromkeys(names), **given} for name, given in runs.items()],
        "sentences": None,
        "comparison": None,
        "left_out": [],
    }


def score(value: float) -> dict[str, Any]:
    return {"value": value, "low": value - 1, "high": value + 2, "signature": "nrefs:1"}


def test_the_verdict_in_one_line() -> None:
    one = figures(a={"scores": {"bleu": score(20.04), "chrf": score(50.0)}})
    assert quality.verdict_line(one) == "a: BLEU 20.0 [19.0, 22.0], chrF 50.0 [49.0, 52.0]."
    assert "95 % between 19.0 and 22.0" in quality.verdict(one).to_html()


def test_the_better_run_is_named_and_chance_is_called_chance() -> None:
    two = figures(a={}, b={})
    test = {"metric": "bleu", "score_a": 21.0, "score_b": 20.0, "better": "A", "p_randomization": 0.01}
    two["comparison"] = {"tests": [test]}
    expected = "a is 1.0 BLEU better than b; the difference is significant (p = 0.0100)"
    assert quality.verdict_line(two).startswith(expected)
    test.update(score_b=21.5, better="B", p_randomization=0.3)
    assert quality.verdict_line(two).startswith(
        "b is 0.5 BLEU better than a; the difference may be chance (p = 0.3000)"
    )
    test.update(better="")
    assert quality.verdict_line(two) == "a and b have the same BLEU."


def test_sections_without_figures_say_so_and_name_the_command() -> None:
    empty = figures(a={})
    made = [
        *(quality.verdict, quality.by_length, quality.by_frequency, quality.ngrams),
        *(sentences.sentence_browser, sentences.detectors, model.calibration, model.attention, model.search),
        *(data.data_card, data.reproducibility),
    ]
    for make in made:
        section = make(empty)
        assert "Left out" in section.content
        assert "<code>make it whole</code>" in section.content
    assert sentences.side_by_side(empty) is None


def test_detectors_count_sentences_and_have_a_button_if_there_are_any() -> None:
    counts = {"empty": 1, "copied": 0, "repeating": 0, "too short": 0, "too long": 0, "number lost": 0, "name lost": 0}
    found = figures(a={"detectors": counts})
    found["sentences"] = []
    content = sentences.detectors(found).content
    assert "1 (25.0 %)" in content
    assert content.count("<button") == 1


def test_the_search_table_shows_speed_and_shares() -> None:
    system = {"bleu": 30.0, "chrf": 55.0, "sentences_per_second": 12.34}
    shares = {"share_different": 0.5, "search_errors": 0.25, "greedy_better": 0.125, "reference_better": 0.125}
    search = {"beam": system, "greedy": {**system, "bleu": 29.0}, "beam_size": 5, "num_sentences": 8, **shares}
    content = model.search(figures(a={"search": search})).content
    for text in ("beam of 5", "30.0", "29.0", "12.3", "50.0 %", "25.0 %", "12.5 %"):
        assert f">{text}<" in content


def test_names_of_runs_appear_where_there_are_two() -> None:
    assert parts.labelled(figures(a={}), "a", "F1") == "F1"
    assert parts.labelled(figures(a={}, b={}), "b", "F1") == "F1 · b"


def test_lengths_are_labelled_with_the_unit_of_the_language() -> None:
    lengths = {"width": 1, "starts": [0, 1], "shares": {"held-out source": [0, 1]}, "longest_counted": 200}
    card = {"lengths": lengths, "languages": ["zh", "en"]}
    assert '"x":"characters"' in data._histogram(card, "source")
    assert '"x":"words"' in data._histogram(card, "target")
