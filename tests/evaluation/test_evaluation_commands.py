"""`evaluate` and `compare` on files, as users run them."""

import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from support.processes import environment
from support.warm_python import Program
from translator import compare, compare_files, evaluate, evaluate_files
from translator.errors import UserError
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
    for name, label in (
        ("bleu", "BLEU"),
        ("chrf", "chrF"),
        ("chrf_pp", "chrF++"),
        ("ter", "TER"),
        ("bleu_lc", "BLEU lc"),
    ):
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


def test_what_needs_a_run_is_refused_without_one(folder: Path) -> None:
    alone = ["--hypothesis", "out.de", "--reference", "ref.de"]
    for flags, named in ((["--beam", "2"], "search options"), (["--gold-alignment", "a"], "--gold-alignment")):
        with pytest.raises(UserError, match=named):
            evaluate_files.run(evaluate.parser().parse_args([*alone, *flags]))
    with pytest.raises(UserError, match="search options need a run"):
        compare_files.run(compare.parser().parse_args(["out.de", "other.de", "--reference", "ref.de", "--beam", "2"]))


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
    assert f"{command.__name__.rpartition('.')[2]}: {flag} {value}: must be" in message
    assert range_ in message


@pytest.mark.parametrize(
    ("command", "path", "message"),
    [
        (evaluate, "ref.de", "--json ref.de: ref.de would be overwritten"),
        (evaluate, "source.en", "--json source.en: source.en would be overwritten"),
        (evaluate, "link", "--json link: out.de would be overwritten"),
        (compare, "out.de", "--json out.de: out.de would be overwritten"),
        (compare, "link", "--json link: out.de would be overwritten"),
        (evaluate, "out.de/x.json", "--json out.de/x.json: cannot be written (Not a directory)"),
        (compare, ".", "--json .: cannot be written (is a directory; give a file inside it)"),
        (compare, "/dev/full", "--json /dev/full: cannot be written (No space left on device)"),
    ],
)
def test_an_output_never_overwrites_an_input_and_is_checked_before_the_work(
    folder: Path, capsys: pytest.CaptureFixture[str], command: ModuleType, path: str, message: str
) -> None:
    (folder / "link").symlink_to("out.de")
    before = {file: file.read_bytes() for file in folder.iterdir()}
    what = ["out.de", "ref.de"] if command is compare else ["--hypothesis", "out.de"]
    arguments = [*what, "--source", "source.en", "--reference", "ref.de", "--bootstrap", "2", "--json", path]
    assert command.main(arguments) == 2
    captured = capsys.readouterr()
    assert (captured.out, captured.err.count("\n")) == ("", 1)
    assert message in captured.err
    assert {file: file.read_bytes() for file in folder.iterdir()} == before


def test_a_translation_does_not_overwrite_an_input(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--model", "runs/none", "--source", "source.en", "--reference", "ref.de", "--output", "source.en"]
    assert evaluate.main(arguments) == 2
    assert "--output source.en: source.en would be overwritten" in capsys.readouterr().err
    assert evaluate.main([*arguments[:-1], "new.de", "--json", "./new.de"]) == 2
    assert "--json new.de: is also written by --output new.de" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["evaluate --hypothesis out.de", "compare out.de other.de --json -"])
def test_a_standard_output_that_is_full_gets_one_line(folder: Path, command: str) -> None:
    name, *arguments = command.split()
    code = f"import sys; from translator.{name} import main; sys.exit(main())"
    with Path("/dev/full").open("wb") as full:
        program = Program(code, *arguments, "--reference", "ref.de", "--bootstrap", "2", stdout=full.fileno())
        done = program.finish()
    message = f"{name}: standard output: cannot be written (No space left on device)\n"
    assert (done.returncode, done.stderr) == (2, message)


def test_a_standard_output_that_is_closed_gets_one_line(folder: Path) -> None:
    line = f"{sys.executable} -m translator.evaluate --hypothesis out.de --reference ref.de --bootstrap 2 >&-"
    done = subprocess.run(["sh", "-c", line], env=environment(), cwd=folder, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (2, "evaluate: standard output: is closed; name a file to write to\n")


def test_languages_are_guessed_from_names() -> None:
    assert guess_language([Path("test.de")]) == "de"
    assert guess_language([Path("a/test.zh.gz"), Path("b.zh")]) == "zh"
    assert guess_language([Path("test.txt")]) is None
    assert guess_language([Path("a.de"), Path("a.en")]) is None


def test_sentences_are_sorted_into_length_classes() -> None:
    texts = ["", "a", "a b c d e", "a b c d e f", "狗在跑。", " ".join("x" * 60)]
    assert length_classes(texts) == {"1-5": [1, 2, 4], "6-10": [3], "51+": [5]}


def test_lengths_of_a_text_are_in_one_unit() -> None:
    assert length_classes(["Schmetterling.", "Ein Schmetterling.", "Donaudampfschifffahrt"]) == {"1-5": [0, 1, 2]}
    assert length_classes(["那只狗在花园里睡觉。", "那只狗 在花园里睡觉。", "狗。", "TCP 协议"]) == {
        "6-10": [0, 1],
        "1-5": [2, 3],
    }
    assert length_classes(["สวัสดีครับ", "ครับ"]) == {"6-10": [0], "1-5": [1]}
