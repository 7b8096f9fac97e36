"""An export to CTranslate2 is served like the run, without torch."""

import json
import re
import signal
import subprocess
import sys
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

import pytest
import torch

from support.dockerfiles import (
    SMALL_IMAGE,
    importable_modules,
    instructions,
    named_packages,
    pip_installs,
    with_dependencies,
)
from support.exported_runs import PAIRS, make_run
from support.processes import environment
from support.servers import running, wait_until
from translator import Translator
from translator.errors import Interrupted, OptionError, UserError
from translator.export import ctranslate2
from translator.runs.loading import load_run
from translator.serve.exported_model import ExportedModel
from translator.serve.launch import is_exported
from translator.serve.models import Details

LEARNT = [source for source, _ in PAIRS]  # what it has not learnt runs on up to the longest length, where rules differ
LINES = [*LEARNT, "", " \t", LEARNT[0]]
# `translate-serve` where only some modules can be imported.
SMALL_SERVER = """
import importlib.abc
import sys

class NotInstalled(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] not in IMPORTABLE:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, NotInstalled())
from translator.serve.command import main
sys.exit(main())
"""


pytestmark = pytest.mark.slow  # a model is trained for it


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("exported") / "run")


@pytest.fixture(scope="module")
def folder(run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("exports") / "exported"
    path.mkdir()
    ctranslate2.write(load_run(run, torch.device("cpu")), path)
    return path


@pytest.mark.parametrize(
    "options",
    [{}, {"beam_size": 1}, {"beam_size": 4, "num_hypotheses": 3, "alpha": 0.6}],
    ids=["beam", "greedy", "n-best"],
)
@pytest.mark.parametrize("split_sentences", [False, True])
def test_its_translations_are_those_of_the_run(
    options: dict[str, Any], split_sentences: bool, run: Path, folder: Path
) -> None:
    translator = Translator.load(run, "cpu", stop="first", **options)  # the rule of CTranslate2
    translator.split_sentences = split_sentences
    model = ExportedModel(folder, num_threads=1, options=options)
    assert (model.source, model.target, model.options) == ("en", "de", translator.options)
    lines = [*LINES, " ".join(LEARNT)] if split_sentences else LINES
    expected = translator.translate_fully(lines)
    results = model.translate(lines, model.options, split_sentences=split_sentences)
    for result, translation in zip(results, expected, strict=True):
        assert [found.text for found in result.candidates] == [output.text for output in translation.outputs]
        assert result.candidates[0].score == pytest.approx(translation.outputs[0].score, abs=0.05)
        assert result.num_source_pieces == translation.num_source_pieces


def test_prefixes_and_limits_of_length_hold(folder: Path) -> None:
    model = ExportedModel(folder, num_threads=1)
    (result,) = model.translate(LINES[:1], model.options, prefixes=["Zwei Hunde"])
    assert result.text().startswith("Zwei Hunde")
    short = model.options.changed(max_length_ratio=0.0, max_length_extra=3)
    (result,) = model.translate(LINES[4:5], short)
    assert 0 < result.num_pieces <= 3


def test_it_is_served(folder: Path) -> None:
    with running([ExportedModel(folder, num_threads=1)]) as server:
        answer = server.post("/translate", {"q": PAIRS[3][0], "source": "en", "target": "de"})
        assert answer.status == 200
        assert answer.json["translatedText"]
        for body, name in (({"details": True}, "details"), ({"options": {"sample": True}}, "options.sample")):
            refused = server.post("/v1/translate", {"text": "a", "source": "en"} | body)
            assert refused.status == 400
            assert refused.json["error"].startswith(f"{name}: ")


def test_what_it_cannot_do_is_refused_by_name(folder: Path, tmp_path: Path) -> None:
    model = ExportedModel(folder, num_threads=1)
    with pytest.raises(OptionError, match="details"):
        model.translate(["a"], model.options, details=Details())
    with pytest.raises(Interrupted):
        model.translate(["a"], model.options, interrupted=lambda: True)
    with pytest.raises(OptionError, match="mbr"):
        ExportedModel(folder, options={"mbr": 3})
    assert is_exported(folder)
    assert not is_exported(tmp_path)
    (tmp_path / "export.json").write_text("{}", encoding="utf-8")
    with pytest.raises(UserError, match="cannot be served"):
        is_exported(tmp_path)


def test_it_is_served_with_nothing_but_the_libraries_of_the_small_image(folder: Path, tmp_path: Path) -> None:
    named = set().union(*map(named_packages, pip_installs(instructions(SMALL_IMAGE))))
    importable = importable_modules(with_dependencies(named))
    assert importable.isdisjoint(["torch", "datasets", "hydra", "sacrebleu", "tqdm", "matplotlib", "psutil"])
    code = f"IMPORTABLE = {sorted(importable)}\n{SMALL_SERVER}"
    arguments = [sys.executable, "-c", code, "--model", str(folder), "--port", "0", "--threads", "1"]
    messages = tmp_path / "messages"
    with messages.open("wb") as file:
        server = subprocess.Popen(arguments, env=environment(), stderr=file)
    try:
        wait_until(lambda: "Listening on" in messages.read_text("utf-8") or server.poll() is not None, 120)
        (url,) = re.findall(r"Listening on (http://\S+);", messages.read_text("utf-8")) or [messages.read_text("utf-8")]
        form = urllib.parse.urlencode({"q": LINES[1], "source": "auto", "target": "de"}).encode()
        with urllib.request.urlopen(f"{url}/translate", form, timeout=60) as answer:
            translation = json.load(answer)["translatedText"]
        with urllib.request.urlopen(f"{url}/metrics", timeout=60) as answer:
            assert b"# TYPE" in answer.read()
        server.send_signal(signal.SIGINT)
        assert server.wait(60) == 0
    finally:
        server.kill()
    model = ExportedModel(folder, num_threads=1)
    assert translation == model.translate(LINES[1:2], model.options)[0].text()
