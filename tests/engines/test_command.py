"""`translate --engine` and what it says."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from support.exported_runs import LINES, PAIRS
from support.processes import environment
from translator import Translator
from translator.translate import main


def test_the_command_writes_the_same_lines_and_resumes_with_the_same_engine_only(
    run: Callable[[str], Path], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    text, output = tmp_path / "in.txt", tmp_path / "out.txt"
    text.write_bytes("".join(f"{line}\n" for line in LINES * 6).encode() + b"\xff\n")
    arguments = [str(text), "--model", str(run("pre")), "--device", "cpu", "--quiet", "-o", str(output)]
    fast = [*arguments, "--engine", "ctranslate2"]
    assert main(fast) == 2  # after the first chunk
    assert json.loads((tmp_path / "out.txt.partial.json").read_text(encoding="utf-8"))["num_lines"] == 64
    text.write_bytes("".join(f"{line}\n" for line in LINES * 6).encode())
    capfd.readouterr()
    assert main([*arguments, "--resume"]) == 2
    assert "other options" in capfd.readouterr().err
    assert main([*fast, "--int8", "--resume"]) == 2
    assert "other options" in capfd.readouterr().err
    assert main([*fast, "--resume"]) == 0
    expected = Translator.load(run("pre"), device="cpu", stop="first").translate(LINES * 6)
    assert output.read_text(encoding="utf-8").splitlines() == expected
    assert main([*fast, "--sample"]) == 2
    assert capfd.readouterr().err.splitlines()[-1].startswith("translate: --sample: CTranslate2's samples")


def test_the_command_says_once_how_many_lines_were_left_to_torch(
    run: Callable[[str], Path], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    text, prefix = tmp_path / "in.txt", tmp_path / "prefix.txt"
    text.write_text("".join(f"{source}\n" for source, _ in PAIRS[:3]), encoding="utf-8")
    prefix.write_text("Ein\n\nEin\n", encoding="utf-8")
    arguments = [str(text), "--model", str(run("pre")), "--device", "cpu", "--engine", "ctranslate2"]
    assert main([*arguments, "--prefix", str(prefix)]) == 0
    assert capfd.readouterr().err.count("2 lines were searched by torch instead of ctranslate2 float32") == 1
    for more in (["--prefix", str(prefix), "--quiet"], []):
        assert main([*arguments, *more]) == 0
        assert "searched by torch" not in capfd.readouterr().err


def test_the_command_says_which_engine_and_which_stopping_rule_it_uses(
    run: Callable[[str], Path], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "in.txt").write_text(f"{LINES[0]}\n", encoding="utf-8")

    def notes(*arguments: str) -> list[str]:
        assert main([str(tmp_path / "in.txt"), "--model", str(run("pre")), "--device", "cpu", *arguments]) == 0
        return [line for line in capfd.readouterr().err.splitlines() if line.startswith("Note: ")]

    ctranslate2, auto = ["--engine", "ctranslate2"], ["--engine", "auto"]
    rule = "ends by --stop first, where the run's own rule is exact."
    assert notes(*ctranslate2) == [f"Note: the beam of ctranslate2 float32 {rule}"]
    assert notes(*auto) == [f"Note: --engine auto uses ctranslate2 float32; its beam {rule}"]
    assert notes(*auto, "--stop", "first") == ["Note: --engine auto uses ctranslate2 float32."]
    assert notes(*auto, "--stop", "exact") == ["Note: --engine auto uses torch."]
    for silent in (["--beam", "1"], ["--stop", "first"], ["--quiet"]):
        assert notes(*ctranslate2, *silent) == []
    assert notes(*auto, "--quiet") == notes() == []


def test_torch_does_not_load_the_library(run: Callable[[str], Path], tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("A man.\n", encoding="utf-8")
    code = (
        "import sys; from translator.translate import main; main(sys.argv[1:]); "
        "assert 'torch' in sys.modules and 'ctranslate2' not in sys.modules"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "in.txt"), "--model", str(run("pre")), "--device", "cpu"]
    subprocess.run(command, env=environment(), check=True, capture_output=True)
