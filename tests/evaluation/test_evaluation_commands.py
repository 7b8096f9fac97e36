"""`evaluate` and `compare` on files, as people call them."""

import json
from pathlib import Path
from types import ModuleType

import pytest

from translator import compare, evaluate
from translator.evaluation.texts import guess_language, length_classes

SOURCES = ["A man reads.", "Two dogs run through the deep white snow today.", "", "Hello there!"]
REFERENCES = ["Ein Mann liest.", "Zwei Hunde rennen heute durch den tiefen weißen Schnee.", "", "Hallo!"]
OUTPUTS = ["Ein Mann liest.", "Zwei Hunde laufen durch den den den den Schnee.", "", ""]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    texts = {"source.en": SOURCES, "ref.de": REFERENCES, "out.de": OUTPUTS, "other.de": REFERENCES[::-1]}
    for name, lines in texts.items():
        (tmp_path / name).write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return tmp_path


def test_a_translation_is_scored_with_a_breakdown(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--hypothesis", "out.de", "--source", "source.en", "--reference", "ref.de", "--bootstrap", "50"]
    assert evaluate.main([*arguments, "--json", "scores.json"]) == 0
    printed = capsys.readouterr().out
    report = json.loads((folder / "scores.json").read_text(encoding="utf-8"))
    for name, label in (("bleu", "BLEU"), ("chrf", "chrF"), ("chrf_pp", "chrF++"), ("ter", "TER")):
        assert f"{label:7}{report[name]['value']:7.2f}" in printed
        assert report[name]["signature"] in printed
        assert report[name]["low"] <= report[name]["high"]
    assert report["target_language"] == "de"
    assert {name: scores["num_sentences"] for name, scores in report["by_source_length"].items()} == {
        "1-5": 2,
        "6-10": 1,
    }
    assert report["diagnostics"] == {"empty": 1 / 3, "copied": 0, "repeating": 1 / 3, "num_sentences": 3}
    assert "33.33 % empty" in printed
    assert evaluate.main([*arguments, "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out) == report


def test_several_references_help(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scores = []
    for references in (["other.de"], ["other.de", "ref.de"]):
        arguments = ["--hypothesis", "ref.de", "--reference", *references, "--bootstrap", "0", "--json", "-"]
        assert evaluate.main(arguments) == 0
        scores.append(json.loads(capsys.readouterr().out))
    assert scores[0]["bleu"]["value"] < 50
    assert scores[1]["bleu"]["value"] == pytest.approx(100)
    assert "low" not in scores[0]["bleu"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--hypothesis", "out.de", "--reference", "none.de"], "none.de: no such file"),
        (["--hypothesis", "short", "--reference", "ref.de"], "short has 1 lines and ref.de has 4"),
        (["--hypothesis", "out.de", "--reference", "short"], "out.de has 4 lines and short has 1"),
        (["--hypothesis", "short", "--reference", "short"], "--target-language"),
        (["--model", "runs/none", "--reference", "ref.de"], "--source"),
        (["--model", "runs/none", "--source", "source.en", "--reference", "ref.de"], "no such directory"),
        (["--hypothesis", "out.de", "--reference", "ref.de", "--gold-alignment", "short"], "--gold-alignment"),
    ],
)
def test_mistakes_get_one_clear_line(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    (folder / "short").write_text("one\n", encoding="utf-8")
    assert evaluate.main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert message in captured.err
    assert captured.err.count("\n") == 1


def test_two_translations_are_compared(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["out.de", "ref.de", "--reference", "ref.de", "--bootstrap", "50", "--randomizations", "50"]
    assert compare.main([*arguments, "--source", "source.en", "--examples", "1", "--json", "result.json"]) == 0
    printed = capsys.readouterr().out
    report = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    assert [entry["metric"] for entry in report["metrics"]] == ["bleu", "chrf", "chrf_pp"]
    assert all(entry["better"] == "B" and 0 < entry["p_bootstrap"] <= 1 for entry in report["metrics"])
    assert [entry["line"] for entry in report["examples"]] == [3]
    assert "source     Hello there!" in printed
    assert "p (bootstrap)" in printed
    assert compare.main(["out.de", "runs", "--reference", "ref.de"]) == 2
    (folder / "runs").mkdir()
    assert compare.main(["out.de", "runs", "--reference", "ref.de"]) == 2
    assert "--source: is needed" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "flag", "value", "range_"),
    [
        (compare, "--bootstrap", "-1", "from 1 to"),
        (compare, "--bootstrap", "0", "from 1 to"),
        (compare, "--randomizations", "0", "from 1 to"),
        (compare, "--randomizations", "10**9", "from 1 to"),
        (compare, "--examples", "-1", "from 0 to"),
        (evaluate, "--bootstrap", "-1", "from 0 to"),
        (evaluate, "--bootstrap", "99999999999", "to 1000000"),
        (evaluate, "--bootstrap", "1.5", "a whole number"),
    ],
)
def test_numbers_outside_their_range_are_refused_with_the_range(
    folder: Path, capsys: pytest.CaptureFixture[str], command: ModuleType, flag: str, value: str, range_: str
) -> None:
    what = ["out.de", "ref.de"] if command is compare else ["--hypothesis", "out.de"]
    with pytest.raises(SystemExit) as exit_:
        command.main([*what, "--reference", "ref.de", f"{flag}={value}"])
    message = capsys.readouterr().err
    assert (exit_.value.code, message.count("\n")) == (2, 1)
    assert f"{flag}: {value}: must be" in message
    assert range_ in message


def test_languages_are_guessed_from_names() -> None:
    assert guess_language([Path("test.de")]) == "de"
    assert guess_language([Path("a/test.zh.gz"), Path("b.zh")]) == "zh"
    assert guess_language([Path("test.txt")]) is None
    assert guess_language([Path("a.de"), Path("a.en")]) is None


def test_sentences_are_sorted_into_classes_of_length() -> None:
    texts = ["", "a", "a b c d e", "a b c d e f", "狗在跑。", " ".join("x" * 60)]
    assert length_classes(texts) == {"1-5": [1, 2, 4], "6-10": [3], "51+": [5]}
