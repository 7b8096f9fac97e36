"""Mistakes in using the `translate` command: one clear line for each, and nothing is overwritten."""

from pathlib import Path

import pytest

from support.fake_command import TranslateCommand
from translator.decoding import memory
from translator.translate import main


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing.txt"], "missing.txt: no such file"),
        (["."], ".: is a directory"),
        (["a.txt", "-o", "a.txt"], "would be overwritten"),
        (["a.txt", "--resume"], "--resume: needs -o"),
        (["a.txt", "-o", "x/../a.txt"], "would be overwritten"),
        (["a.txt", "--nbest", "5", "--beam", "2"], "--nbest 5: a beam of 2 cannot give more hypotheses"),
        (["a.txt", "--sample", "--top-p", "2"], "--top-p 2: must be at most 1"),
        (["a.txt", "--prefix", "none.txt"], "none.txt"),
        (["a.txt", "-o", "a.txt/b.txt"], "-o a.txt/b.txt: cannot be written (Not a directory)"),
        (["a.txt", "-o", "/proc/none/b.txt"], "-o /proc/none/b.txt: cannot be written"),
        (["a.txt", "-o", "link"], "-o link: a.txt would be overwritten"),
        (["a.partial", "-o", "a"], "-o a: a.partial would be overwritten"),
        (["a.txt", "a.partial.json", "-o", "a"], "-o a: a.partial.json would be overwritten"),
        (["a.txt", "--prefix", "a.partial", "-o", "a.partial"], "-o a.partial: a.partial would be overwritten"),
        (["a.txt", "x/a.txt.partial", "-o", "x/"], "a.txt.partial would be overwritten"),
        (["a.txt", "--attention", "a.txt"], "--attention a.txt/index.html: cannot be written"),
        (["a.txt", "--prefix", "-"], "--prefix -: prefixes are not read from the standard input"),
        (["a.txt", "--forbid", "\udcff"], "a forbidden word must be valid UTF-8"),
        (["-", "-"], "the standard input can be read only once"),
        (["a.txt", "-o", "/dev/full"], "-o /dev/full: cannot be written (No space left on device)"),
        (["a.txt", "-o", "/dev/null", "--resume"], "--resume: /dev/null is a device or a pipe"),
    ],
)
def test_mistakes_get_one_clear_line(
    translate: TranslateCommand, tmp_path: Path, arguments: list[str], message: str
) -> None:
    (tmp_path / "x").mkdir()
    inputs = [tmp_path / name for name in ("a.txt", "a.partial", "a.partial.json", "x/a.txt.partial")]
    for path in inputs:
        path.write_text("one\n", encoding="utf-8")
    (tmp_path / "link").symlink_to("a.txt")
    code, out, err = translate(*arguments)
    assert (code, out) == (2, b"")
    assert message in err
    assert err.count("\n") == 1
    assert [path.read_text(encoding="utf-8") for path in inputs] == ["one\n"] * len(inputs)


def test_a_beam_that_does_not_fit_into_memory_is_refused_by_its_flag(
    translate: TranslateCommand, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "available_memory", lambda device: 1_000_000)
    code, out, err = translate("--beam", "5000", stdin=b"one\n")
    assert (code, out) == (2, b"")
    assert err.startswith("translate: --beam 5000: a sentence of 4 pieces needs about")
    assert err.count("\n") == 1


def test_models_that_cannot_be_used_get_one_clear_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def error(model: Path) -> str:
        assert main(["--model", str(model)]) == 2
        message = capsys.readouterr().err
        assert message.count("\n") == 1
        return message

    run = tmp_path / "run"
    assert "no such directory" in error(run)
    run.mkdir()
    assert "not a training run" in error(run)
    (run / "config.yaml").touch()
    assert "not a training run" in error(run)
    (run / "manifest.json").write_text('{"format_version": 1}', encoding="utf-8")
    assert "no tokenizer" in error(run)
    (run / "tokenizer").mkdir()
    (run / "tokenizer/tokenizer.json").write_text("{}", encoding="utf-8")
    assert "no weights yet" in error(run)
    (run / "metrics.json").write_text("{}", encoding="utf-8")
    assert "model.safetensors is missing; restore it from a copy of the run, or train again" in error(run)
    (run / "tokenizer/tokenizer.json").unlink()
    assert "tokenizer/tokenizer.json is missing" in error(run)
    (run / "manifest.json").write_text('{"format_version": 99}', encoding="utf-8")
    assert "newer version" in error(run)
    (run / "manifest.json").write_text("{", encoding="utf-8")
    assert "damaged" in error(run)
    assert "is a file; give the directory of a training run" in error(run / "config.yaml")
