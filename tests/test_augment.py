"""`augment`: a run translates text, which becomes a corpus to train on. The model copies its source in capitals."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from support.fake_command import SlowTranslator
from support.processes import environment
from support.small_runs import make_small_run, write_corpora
from translator import translate_files
from translator.api import Translator
from translator.augment import main
from translator.augment_run import Places
from translator.config import load_file, save_file
from translator.data.corpus import TextCorpus
from translator.data.normalization import normalize_text
from translator.errors import OptionError
from translator.files.fingerprints import sha256
from translator.schema.augment import AugmentOptions

LINES = ["a dog runs", "", "BERLIN", "two dogs", "a dog runs", "the snow"]
Augment = Callable[..., tuple[int, str]]


def pairs_of(prefix: Path, source: str, target: str) -> list[tuple[str, str]]:
    return list(TextCorpus(str(prefix), Path(f"{prefix}.{source}"), Path(f"{prefix}.{target}")))


@pytest.fixture
def augment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Augment:
    """Runs the command in a folder with a run from English to German, whose model copies in capitals."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(translate_files, "Translator", SlowTranslator)
    write_corpora(tmp_path)
    make_small_run(tmp_path / "run", tmp_path)
    (tmp_path / "text").write_text("".join(f"{line}\n" for line in LINES), encoding="utf-8")

    def run(*arguments: object) -> tuple[int, str]:
        try:
            code = main(["--model", "run", *map(str, arguments)])
        except SystemExit as ending:
            code = int(str(ending.code))
        captured = capsys.readouterr()
        return code, captured.err + captured.out

    return run


def test_back_translations_are_the_sources_of_the_text(augment: Augment, tmp_path: Path) -> None:
    (tmp_path / "test.txt").write_text("the  snow\n", encoding="utf-8")
    assert Places(Path("new/back"), "de", "en").results[0] == Path("new/back.de")
    (tmp_path / "terms.tsv").write_text("zebra\tZEBRA\n", encoding="utf-8")
    code, said = augment("--kind", "back", "text", "-o", "new/back", "--exclude", "test.txt", "--terms", "terms.tsv")
    assert code == 0
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == ["back.de", "back.en", "back.manifest.json"]
    pairs = [("A DOG RUNS", "a dog runs"), ("TWO DOGS", "two dogs")]
    assert pairs_of(tmp_path / "new/back", "de", "en") == pairs
    manifest = json.loads((tmp_path / "new/back.manifest.json").read_text(encoding="utf-8"))
    assert (manifest["kind"], manifest["source"], manifest["target"]) == ("back", "de", "en")
    dropped = {"drop_blank": 1, "drop_duplicates": 1, "drop_identical": 1, "excluded": 1}
    assert manifest["counts"] == {"lines": 6, "translations": 6, "kept": 2, "dropped": dropped}
    assert manifest["models"] == [{"run": "run", "weights_sha256": sha256(tmp_path / "run/model.safetensors")}]
    assert [(entry["role"], entry["sha256"]) for entry in manifest["inputs"]] == [
        (role, sha256(tmp_path / name))
        for role, name in (("text", "text"), ("exclude", "test.txt"), ("terms", "terms.tsv"))
    ]
    assert manifest["options"]["max_ratio"] is None
    assert manifest["options"]["cleaning"] == vars(load_file(tmp_path / "run/config.yaml").data.cleaning)
    assert manifest["files"] == {name: sha256(tmp_path / "new" / name) for name in ("back.de", "back.en")}
    assert manifest["search"]["beam_size"] == 2
    assert manifest["rerank"] is None
    assert "6 translations of 6 lines; 2 pairs kept" in said
    assert "drop_blank dropped 1" in said
    assert said.endswith("for data.source=de data.target=en 'data.train=[…,new/back]' 'data.train_tags=[null,bt]'\n")


def test_forward_translations_are_the_targets_and_may_be_several(augment: Augment, tmp_path: Path) -> None:
    assert augment("--kind", "forward", "text", "-o", "more", "--nbest", "2", "--quiet")[0] == 0
    pairs = pairs_of(tmp_path / "more", "en", "de")
    assert [source for source, _ in pairs] == ["a dog runs"] * 2 + ["BERLIN"] + ["two dogs"] * 2 + ["the snow"] * 2
    assert pairs[0][1] == "A DOG RUNS" != pairs[1][1]
    assert len(set(pairs)) == len(pairs)


def test_the_manifest_has_the_rules_that_really_filtered(augment: Augment, tmp_path: Path) -> None:
    config = load_file(tmp_path / "run/config.yaml")
    config.data.cleaning.drop_identical, config.data.cleaning.max_characters = False, 9
    save_file(config, tmp_path / "run/config.yaml")
    (tmp_path / "wanted").write_text("".join(f"{line}\n" for line in LINES), encoding="utf-8")
    arguments = ("--kind", "distill", "text", "--nbest", 2, "--reference", "wanted", "--max-ratio", 3)
    code, said = augment(*arguments, "-o", "new")
    assert code == 0
    assert "data.train_tags" not in said, "only back-translations are usually tagged"
    manifest = json.loads((tmp_path / "new.manifest.json").read_text(encoding="utf-8"))
    used = {"drop_identical": False, "max_characters": 9, "max_ratio": 3.0}
    assert manifest["options"]["cleaning"] == {**vars(config.data.cleaning), **used}
    assert [entry["role"] for entry in manifest["inputs"]] == ["text", "reference"]
    pairs = pairs_of(tmp_path / "new", "en", "de")
    assert ("BERLIN", "BERLIN") in pairs
    assert all(max(map(len, pair)) <= 9 for pair in pairs)


def test_an_ensemble_of_two_runs_translates_as_one(tmp_path: Path) -> None:
    write_corpora(tmp_path)
    runs = [make_small_run(tmp_path / name, tmp_path, seed=seed) for name, seed in (("a", 1), ("b", 2))]
    text, prefix = tmp_path / "test.en", tmp_path / "new"
    arguments = ["--kind", "distill", str(text), "-o", str(prefix), "--max-ratio", "0", "--device", "cpu", "--quiet"]
    assert main([*arguments, "--model", str(runs[0]), "--model", str(runs[1])]) == 0
    lines = text.read_text(encoding="utf-8").splitlines()

    def kept(*models: Path) -> dict[str, str]:
        translations = map(normalize_text, Translator.load(models, "cpu").translate(lines))
        pairs = zip(map(normalize_text, lines), translations, strict=True)
        return {source: target for source, target in pairs if source and target}

    assert dict(pairs_of(prefix, "en", "de")) == kept(*runs)
    assert kept(*runs) not in (kept(runs[0]), kept(runs[1]))
    manifest = json.loads((tmp_path / "new.manifest.json").read_text(encoding="utf-8"))
    assert manifest["models"] == [
        {"run": str(run), "weights_sha256": sha256(run / "model.safetensors")} for run in runs
    ]


def test_a_run_with_both_directions_makes_corpora_for_both(augment: Augment, tmp_path: Path) -> None:
    shutil.rmtree(tmp_path / "run")
    make_small_run(tmp_path / "run", tmp_path, both_directions=True)
    assert augment("--kind", "back", "text", "-o", "back", "--to", "en", "--quiet")[0] == 0
    assert pairs_of(tmp_path / "back", "en", "de")[0] == ("A DOG RUNS", "a dog runs")


def test_a_distilled_corpus_may_keep_what_is_closest_to_the_reference(augment: Augment, tmp_path: Path) -> None:
    arguments = ("--kind", "distill", "text", "--nbest", 4, "--beam", 4)
    assert augment(*arguments, "-o", "all", "--min-score", "-99")[0] == 0
    second_best = {}
    for source, target in pairs_of(tmp_path / "all", "en", "de"):
        second_best[source] = target  # in the end, the last of the list
    (tmp_path / "reference").write_text("".join(f"{second_best.get(line, '')}\n" for line in LINES), encoding="utf-8")
    for utility in ("bleu", "chrf"):
        closest = ("--reference", "reference", "--closest", utility)
        assert augment(*arguments, *closest, "-o", utility)[0] == 0
        chosen = dict(pairs_of(tmp_path / utility, "en", "de"))
        assert chosen == {source: target for source, target in second_best.items() if source in chosen}
        assert len(chosen) >= 3


def test_an_interrupted_command_is_continued(augment: Augment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "".join(f"line number {number}\n" for number in range(150))
    (tmp_path / "long").write_text(text, encoding="utf-8")
    arguments = ("--kind", "forward", "long", "-o", "out")
    whole = SlowTranslator.translate_fully
    calls = []

    def broken(self: SlowTranslator, lines: list[str], **options: object) -> object:
        calls.append(len(lines))
        if len(calls) == 2:
            raise KeyboardInterrupt
        return whole(self, lines, **options)

    monkeypatch.setattr(SlowTranslator, "translate_fully", broken)
    assert augment(*arguments)[0] == 130
    partial = tmp_path / "out.translations.jsonl.partial"
    assert partial.exists()
    assert not (tmp_path / "out.de").exists()
    code, said = augment(*arguments)
    assert (code, said.count("\n")) == (2, 1)
    assert "continue it with --resume" in said
    assert augment(*arguments, "--resume", "--beam", "3")[0] == 2, "the search is another one"
    code, said = augment(*arguments, "--resume", "--keep-share", "1e-9", "--min-score", "5")
    assert (code, "no pair is left (min_score dropped 150); the translations are kept, and --resume" in said) == (
        2,
        True,
    )
    num_calls = len(calls)
    assert augment(*arguments, "--resume")[0] == 0, "only the pairs are chosen again"
    assert len(calls) == num_calls
    assert (tmp_path / "out.de").read_text(encoding="utf-8") == text.upper()
    assert not partial.exists()


def test_nothing_is_overwritten_without_being_asked(augment: Augment, tmp_path: Path) -> None:
    (tmp_path / "out.de").write_text("precious\n", encoding="utf-8")
    code, said = augment("--kind", "forward", "text", "-o", "out")
    assert (code, said) == (
        2,
        "augment: -o out: out.de exists; give another prefix, or replace it with --overwrite\n",
    )
    assert (tmp_path / "out.de").read_text(encoding="utf-8") == "precious\n"
    assert augment("--kind", "forward", "text", "-o", "out", "--overwrite")[0] == 0
    assert augment("--kind", "forward", "out.de", "-o", "out", "--overwrite")[0] == 2, "that is its input"
    assert augment("--kind", "forward", "text", "-o", "out", "--overwrite", "--terms", "out.de")[0] == 2


@pytest.mark.parametrize("folder", [".", "/", "existing/"])
def test_a_folder_is_no_prefix(augment: Augment, tmp_path: Path, folder: str) -> None:
    (tmp_path / "existing").mkdir()
    code, said = augment("--kind", "forward", "text", "-o", folder)
    prefix = Path(folder)
    message = f"augment: -o {prefix}: is a folder; give the beginning of the files' names, such as {prefix / 'forward'}"
    assert (code, said) == (2, f"{message}\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing"], "missing: no such file"),
        (["-"], "-: the standard input cannot be read twice"),
        (["text", "--reference", "text"], "--reference: only for --kind distill, and this is"),
        (["text", "--kind", "distill", "--reference", "text"], "add --nbest 8"),
        (["text", "--kind", "distill", "--reference", "train.de"], "has 20 lines and the text to translate has 6"),
        (["text", "--keep-share", "0"], "--keep-share 0: must be greater than 0"),
        (["text", "--max-ratio", "0.5"], "--max-ratio 0.5: must be at least 1, or 0 for no limit"),
        (["text", "--to", "en"], "--to en: run translates into de only"),
        (["empty"], "empty: nothing to translate"),
    ],
)
def test_mistakes_get_one_line(augment: Augment, tmp_path: Path, arguments: list[str], message: str) -> None:
    (tmp_path / "empty").touch()
    before = sorted(tmp_path.iterdir())
    code, said = augment("--quiet", "--kind", "forward", *arguments, "-o", "out")
    assert code == 2
    assert message in said
    assert said.count("\n") == 1
    assert sorted(tmp_path.iterdir()) == before


def test_options_are_checked_wherever_they_come_from() -> None:
    with pytest.raises(OptionError, match="min_score"):
        AugmentOptions(min_score="low")  # type: ignore[arg-type]
    assert AugmentOptions().min_score is None


@pytest.mark.slow
@pytest.mark.parametrize("model", ["transformer_tiny", "lstm_small"])
def test_a_model_is_trained_on_what_another_has_translated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: str
) -> None:
    import subprocess
    import sys

    def train(*options: str) -> None:
        small = [f"model={model}", "trainer=smoke", "tokenizer.vocab_size=500"]
        command = [sys.executable, "-m", "translator.train", *small, *options]
        subprocess.run(command, check=True, cwd=tmp_path, env=environment(), capture_output=True)

    sizes = ["data.num_train=400", "data.num_valid=20", "data.num_test=20"]
    train("data=demo", "data.folder=demo", "data.source=de", "data.target=en", "run_dir=runs/back", *sizes)
    monkeypatch.chdir(tmp_path)
    (demo,) = (path.parent for path in Path("demo").rglob("train.de"))
    text = (demo / "train.de").read_text(encoding="utf-8").splitlines(keepends=True)
    Path("more.de").write_text("".join(text[:40]), encoding="utf-8")
    engine = ["--engine", "ctranslate2"] if model == "transformer_tiny" else ["--sample", "--max-length-ratio", "1"]
    arguments = ["--kind", "back", "--model", "runs/back", "more.de", "-o", "made/back", *engine]
    assert main(arguments) == 0
    num_pairs = len(pairs_of(Path("made/back"), "en", "de"))
    assert num_pairs > 5
    corpora = f"data.train=[{demo / 'train'},made/back]"
    splits = [f"data.valid={demo / 'valid'}", f"data.test={demo / 'test'}"]
    train(
        "data=text",
        "data.source=en",
        "data.target=de",
        corpora,
        "data.train_weights=[1,2]",
        "data.train_tags=[null,bt]",
        *splits,
        "run_dir=runs/both",
    )
    assert len(Translator.load("runs/both", "cpu").translate(["A dog."])) == 1
