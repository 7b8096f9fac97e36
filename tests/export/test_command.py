"""`python -m translator.export` on small runs: what it writes, verifies and refuses."""

import json
import re
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import ctranslate2
import pytest
import torch

from support.exported_runs import PAIRS, SMALL, lstm_run, make_run
from support.processes import environment
from translator.config import load_file, save_file
from translator.export import command, extras
from translator.export import ctranslate2 as ctranslate2_export
from translator.export.__main__ import main
from translator.files import atomic
from translator.runs.loading import LoadedRun, load_run
from translator.schema.model import TransformerConfig

EACH_TARGET = pytest.mark.parametrize(
    "target", ["ctranslate2", *(pytest.param(name, marks=pytest.mark.slow) for name in ("huggingface", "onnx"))]
)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("runs") / "run")


def program(folder: Path) -> str:
    """The program in the model card."""
    (found,) = re.findall(r"```python\n(.*?)```", (folder / "README.md").read_text(encoding="utf-8"), flags=re.DOTALL)
    return str(found)


def run_program(folder: Path, source: str) -> str:
    code = program(folder).replace("Hello!", source)
    assert source in code
    arguments = [sys.executable, "-c", code]
    done = subprocess.run(arguments, cwd=folder.parent, env=environment(), capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_an_export_to_ctranslate2_translates_as_the_run_and_as_its_card_says(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "exported"
    assert main([str(run), "--to", "ctranslate2", "-o", str(folder), "--shortlist", "--license", "cc0-1.0"]) == 0
    said = capsys.readouterr()
    assert "greedy: 6 of 6 translations equal" in said.err
    assert "beam 3: 6 of 6 translations equal" in said.err
    assert "shortlist from 6 pairs (use_vmap=True): 6 of 6 translations equal" in said.err
    card = (folder / "README.md").read_text(encoding="utf-8")
    for expected in ("license: cc0-1.0", "| validation | BLEU | 12.34 | `the signature` |", "6 of 6", "`train`"):
        assert expected in card
    assert str(run.parent) not in card
    assert run_program(folder, PAIRS[0][0]) == PAIRS[0][1]  # which the model has memorised
    (folder / "vmap.txt").write_text("\t</s> s\n", encoding="utf-8")  # no other piece may be written
    assert set(run_program(folder, PAIRS[0][0])) <= {"s"}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["exported"]


def test_the_speedup_of_a_shortlist_does_not_include_loading(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, real = [0.0], ctranslate2_export.ctranslate2.Translator

    class Timed:
        """Loads in 100 s, and translates in 3 s without and 2 s with the shortlist."""

        def __init__(self, *arguments: Any, **options: Any) -> None:
            clock[0] += 100
            self.translator = real(*arguments, **options)

        def translate_batch(self, lines: list[list[str]], **options: Any) -> Any:
            clock[0] += 2 if options["use_vmap"] else 3
            return self.translator.translate_batch(lines, **options)

    monkeypatch.setattr(ctranslate2_export.ctranslate2, "Translator", Timed)
    monkeypatch.setattr(command.time, "perf_counter", lambda: clock[0])
    assert main([str(run), "--to", "ctranslate2", "-o", str(tmp_path / "exported"), "--shortlist"]) == 0
    assert "6 of 6 translations equal, 1.50 times as fast" in capsys.readouterr().err


@pytest.mark.parametrize("quantization", ["int8", "int8_float32", "float16"])
def test_lower_precision_reports_how_much_it_changes_and_what_it_computes_in(
    quantization: str, run: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder, exact = tmp_path / "exported", tmp_path / "exact"
    level = ctranslate2.get_log_level()
    assert main([str(run), "--to", "ctranslate2", "--quantization", quantization, "-o", str(folder)]) == 0
    assert ctranslate2.get_log_level() == level
    error = capfd.readouterr().err
    bleu = r"BLEU [\d.]+ before the export, [\d.]+ after it \([+-][\d.]+\)"
    assert len(re.findall(rf"[1-6] of 6 translations equal.*; {bleu}", error)) == 2
    assert json.loads((folder / "export.json").read_text(encoding="utf-8"))["quantization"] == quantization
    computed = ctranslate2.Translator(str(folder)).compute_type
    (precision,) = re.findall(rf"weights stored in {quantization}, computed in {computed} for these checks.*", error)
    assert f"- {precision}" in (folder / "README.md").read_text(encoding="utf-8")
    supported = ctranslate2.get_supported_compute_types("cpu")
    assert (f"does not compute in {quantization} on this CPU" in precision) == (quantization not in supported)
    assert "[ctranslate2]" not in error  # the library's own warnings
    ctranslate2_export.write(load_run(run, torch.device("cpu")), exact)
    assert (folder / "model.bin").stat().st_size < (exact / "model.bin").stat().st_size


def test_without_references_lower_precision_is_scored_against_the_run(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines, folder = tmp_path / "lines.txt", tmp_path / "exported"
    lines.write_text("".join(f"{source}\n" for source, _ in PAIRS), encoding="utf-8")
    arguments = [str(run), "--to", "ctranslate2", "--quantization", "int8", "-o", str(folder), "--sample", str(lines)]
    assert main(arguments) == 0
    scores = re.findall(
        r"of 6 translations equal.*; BLEU [\d.]+ against the run's own translations", capsys.readouterr().err
    )
    assert len(scores) == 2
    assert all(score in (folder / "README.md").read_text(encoding="utf-8") for score in scores)


@EACH_TARGET
def test_an_export_that_translates_differently_is_not_written(
    target: str, run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    module = extras.load_target(target)
    write = module.write

    def write_wrongly(loaded: LoadedRun, folder: Path, **options: str) -> None:
        loaded.model.embeddings.target.weight.data[260:].mul_(-1)  # type: ignore[union-attr]
        try:
            write(loaded, folder, **options)
        finally:
            loaded.model.embeddings.target.weight.data[260:].mul_(-1)  # type: ignore[union-attr]

    monkeypatch.setattr(module, "write", write_wrongly)
    assert main([str(run), "--to", target, "-o", str(tmp_path / "exported")]) == 2
    error = capsys.readouterr().err
    assert "translates differently" in error
    assert f"greedy, {PAIRS[0][0]!r}: the run {PAIRS[0][1]!r}, the export '" in error
    assert not list(tmp_path.iterdir())


@EACH_TARGET
def test_a_run_that_has_learnt_nothing_is_compared_greedily_and_a_warning_says_what_that_is_worth(
    target: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, folder = make_run(tmp_path / "run", num_updates=0), tmp_path / "exported"
    assert main([str(run), "--to", target, "-o", str(folder)]) == 0
    error = capsys.readouterr().err
    greedy = re.search(r"greedy: 6 of 6 translations equal.*; [1-6] longer than 200 pieces compared up to there", error)
    assert greedy, error
    assert "train it for longer and export it again, or give other lines with --sample" in error
    assert f"- {greedy[0]}" in (folder / "README.md").read_text(encoding="utf-8")


@EACH_TARGET
def test_all_files_have_the_permissions_of_the_umask(target: str, run: Path, tmp_path: Path) -> None:
    folder = tmp_path / "exported"
    assert main([str(run), "--to", target, "-o", str(folder)]) == 0
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.rglob("*") if path.is_file()}
    assert len(modes) >= 4
    assert modes == dict.fromkeys(modes, 0o666 & ~atomic._UMASK)


@EACH_TARGET
def test_a_full_disk_is_explained_in_one_line_and_nothing_is_left(
    target: str, run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    resource = pytest.importorskip("resource")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, limits[1]))  # too little for the weights
    try:
        assert main([str(run), "--to", target, "-o", str(tmp_path / "exported")]) == 2
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    *_, error = capsys.readouterr().err.splitlines()
    assert re.match(rf"export: -o {re.escape(str(tmp_path))}/exported: cannot be written \(.*File too large", error)
    assert not list(tmp_path.iterdir())


def test_what_cannot_be_exported_is_refused_in_one_line(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    relative = make_run(tmp_path / "a" / "relative", TransformerConfig(**SMALL, positions="relative"), num_updates=0)
    moved = make_run(tmp_path / "b" / "moved", num_updates=0)
    turned = make_run(tmp_path / "d" / "turned", num_updates=0)
    config = load_file(turned / "config.yaml")
    config.data.reverse_target = True
    save_file(config, turned / "config.yaml")
    tagged = make_run(tmp_path / "e" / "tagged", num_updates=0, tags=["<2en>", "<2de>"])
    (moved.parent / "valid.en").unlink()
    (tmp_path / "blank.txt").write_text(" \n\n", encoding="utf-8")
    (tmp_path / "one.txt").write_text("A line.\n", encoding="utf-8")
    (tmp_path / "two.txt").write_text("Eine Zeile.\nNoch eine.\n", encoding="utf-8")
    to = ["--to", "ctranslate2"]
    for arguments, expected in (
        ([str(lstm_run(tmp_path / "c" / "lstm")), *to], "has no LSTM"),
        ([str(relative), *to], "model.positions=relative"),
        ([str(moved), *to], "valid.en.* give other lines with --sample FILE"),
        ([str(turned), *to], "turned: was trained with data.reverse_target=true, and other programs"),
        ([str(tagged), "--to", "onnx"], r"--to onnx: the run's vocabulary has tags \(<2en>, <2de>\), which only"),
        ([str(tagged), *to, "--shortlist"], r"--shortlist: not for a run whose vocabulary has tags \(<2en>, <2de>\)"),
        ([str(tmp_path / "nothing"), *to], "no such directory"),
        ([str(run), "--to", "huggingface", "--quantization", "int8"], "--quantization int8: for --to ctranslate2"),
        ([str(run), "--to", "huggingface", "--shortlist"], "--shortlist: for --to ctranslate2"),
        ([str(run), *to, "--license", "a b"], "--license a b: give an identifier"),
        ([str(run), *to, "--license", "mité"], "--license mité: give an identifier"),
        ([str(run), *to, "--sample", str(tmp_path / "blank.txt")], r"--sample \S+blank.txt: has no line"),
        ([str(run), *to, "--reference", str(tmp_path / "one.txt")], "needs --sample"),
        (
            [str(run), *to, "--sample", str(tmp_path / "one.txt"), "--reference", str(tmp_path / "two.txt")],
            r"two.txt: has 2 lines, but --sample \S+one.txt has 1; give one reference per line",
        ),
    ):
        assert main([*arguments, "-o", str(tmp_path / "exported")]) == 2, expected
        error = capsys.readouterr().err
        assert re.search(expected, error), error
        assert error.count("\n") == 1
    assert not (tmp_path / "exported").exists()

    def missing(name: str) -> None:
        raise ModuleNotFoundError("No module named 'ctranslate2'", name="ctranslate2")

    monkeypatch.setattr(extras.importlib, "import_module", missing)
    assert main([str(run), *to, "-o", str(tmp_path / "exported")]) == 2
    assert "pip install 'translator[export]'" in capsys.readouterr().err


def test_judges_that_an_export_leaves_out_are_named(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    judged = shutil.copytree(run, tmp_path / "judged")
    judges = [{"run": "../backwards", "weight": 0.5}, {"run": "../other", "weight": 1.0}]
    (judged / "tuning.json").write_text(json.dumps({"rerank": {"judges": judges, "length": 0.0}}), encoding="utf-8")
    lines = tmp_path / "lines.txt"
    lines.write_text(f"{PAIRS[0][0]}\n", encoding="utf-8")
    options = ["--to", "ctranslate2", "-o", str(tmp_path / "exported"), "--sample", str(lines)]
    assert main([str(judged), *options]) == 0
    assert (
        f"Note: {judged} has judges from `tune --rerank` (../backwards, ../other); an export has none, so translations "
        "may differ.\n"
    ) in capsys.readouterr().err
    assert main([str(run), *options]) == 0
    assert "has judges" not in capsys.readouterr().err


def test_a_given_sample_replaces_the_validation_set(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "DEFAULT_BEAM", 2)
    lines = tmp_path / "lines.txt"
    lines.write_text("\n".join(source for source, _ in PAIRS[:2]) + "\n\n   \n", encoding="utf-8")
    arguments = [str(run), "--to", "ctranslate2", "-o", str(tmp_path / "exported"), "--sample", str(lines)]
    assert main(arguments) == 0
    error = capsys.readouterr().err
    assert "greedy: 2 of 2 translations equal\n" in error  # blank lines do not count, and there is no reference
    assert "beam 2: 2 of 2 translations equal\n" in error
    assert main([*arguments, "--sample-size", "1"]) == 0  # over the earlier export
    assert "greedy: 1 of 1 translations equal" in capsys.readouterr().err
