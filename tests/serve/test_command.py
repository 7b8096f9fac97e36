"""`translate-serve`: what it refuses to start with."""

import json
import re
import shutil
import socket
from pathlib import Path

import pytest

from support.warm_python import Program
from translator.errors import UserError
from translator.serve import launch
from translator.serve.command import main, parser
from translator.serve.running import address, listen
from translator.serve.torch_model import TorchModel


def test_a_port_that_is_taken(capsys: pytest.CaptureFixture[str], small_run: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["--model", str(small_run), "--port", str(port)]) == 2
    assert capsys.readouterr().err == (
        f"translate-serve: --port {port}: cannot listen on 127.0.0.1 (Address already in use); give another port, or 0 "
        "for any free one\n"
    )


@pytest.mark.parametrize("host", ["192.0.2.1", "2001:db8::1", "name.invalid"])  # reserved: no machine has them
def test_an_address_of_another_machine(host: str) -> None:
    with pytest.raises(UserError, match=rf"^--host {host}: no such address \(.+\); give one of this machine$"):
        listen(host, 0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--model", "nowhere"], "--model nowhere: no such directory; give the directory of a training run, "),
        (["--model", "RUN", "--model", "RUN"], "--model RUN: RUN translates en into de as well; give one model for"),
        (["--model", "RUN", "--api-keys", "nowhere"], "--api-keys nowhere: cannot be read (No such file or directory)"),
        (["--model", "RUN", "--int8"], "--int8: the torch engine computes in float32; use the ctranslate2 engine"),
        (["--model", "RUN", "--rerank", "nowhere"], "--rerank nowhere: no such directory; give the directory of"),
        (["--model", "RUN", "--nbest", "9", "--beam", "2"], "--nbest 9: a beam of 2 cannot give more hypotheses"),
    ],
    ids=str,
)
def test_mistakes_get_one_line(
    arguments: list[str], message: str, small_run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [str(small_run) if argument == "RUN" else argument for argument in arguments]
    assert main([*given, "--port", "0"]) == 2
    error = capsys.readouterr().err
    assert error.replace(str(small_run), "RUN").startswith(f"translate-serve: {message}")
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--port", "70000"], "--port 70000: must be at most 65535"),
        (["--max-characters", "0"], "--max-characters 0: must be at least 1"),
        (["--beam", "x"], "--beam x: must be a whole number"),
    ],
    ids=str,
)
def test_values_out_of_range_are_refused_before_anything_is_loaded(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(arguments)
    assert capsys.readouterr().err == f"translate-serve: {message}\n"
    assert Path("runs/latest") == launch.DEFAULT_MODEL


def test_a_run_whose_judge_is_gone_is_served_without_reranking(
    small_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = shutil.copytree(small_run, tmp_path / "run")
    record = {"rerank": {"judges": [{"run": "../gone", "weight": 1.0}], "length": 0.0}}
    (run / "tuning.json").write_text(json.dumps(record), encoding="utf-8")
    assert main(["--model", str(run), "--port", "0"]) == 2
    assert "gone: no such directory; put it back, tune again with --rerank, or go on with --rerank none" in (
        capsys.readouterr().err
    )
    (model,) = launch._load(parser().parse_args(["--model", str(run), "--rerank", "none", "--device", "cpu"]))
    assert isinstance(model, TorchModel)
    assert model.translator.reranker is None


def test_a_missing_library_is_named_with_what_to_install() -> None:
    code = "import sys; sys.modules['starlette'] = None; from translator.serve.command import main; sys.exit(main())"
    done = Program(code).finish()
    assert (done.returncode, done.stderr) == (
        2,
        "translate-serve: the server: needs starlette, which is not installed; pip install 'translator[serve]'\n",
    )


def test_the_module_is_the_command() -> None:
    code = (
        "import runpy, sys; sys.argv = ['serve', '--help']; runpy.run_module('translator.serve', run_name='__main__')"
    )
    done = Program(code).finish()
    assert done.returncode == 0
    assert "--max-queue N" in done.stdout
    with listen("127.0.0.1", 0) as listener:
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+", address(listener))
