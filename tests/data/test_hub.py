import csv
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from translator.data import hub
from translator.data.corpus import Corpus, Splits
from translator.data.hub import open_hub
from translator.errors import UserError

TRAIN = [(f"sentence {number}", f"Satz {number}") for number in range(2_345)]  # more than two batches
VALID = [("Grüße 你好", "👩‍🚀\u2028 x"), ("", "zwei")]
TEST = [("one", "eins")]
SPLITS = {"train": TRAIN, "validation": VALID, "test": TEST}
Pairs = list[tuple[str, str]]


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    datasets.disable_progress_bars()


def write_flat_json(path: Path, pairs: Pairs) -> None:
    rows = [json.dumps({"id": number, "en": en, "de": de}) for number, (en, de) in enumerate(pairs)]
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")


def write_nested_json(path: Path, pairs: Pairs) -> None:
    rows = [json.dumps({"translation": {"de": de, "en": en, "fr": "?"}}) for en, de in pairs]
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")


def write_flat_parquet(path: Path, pairs: Pairs) -> None:
    columns = {"de": [de for _, de in pairs], "en": [en for en, _ in pairs], "score": [0.5] * len(pairs)}
    pq.write_table(pa.table(columns), path)


def write_nested_parquet(path: Path, pairs: Pairs) -> None:
    pq.write_table(pa.table({"translation": [{"en": en, "de": de} for en, de in pairs]}), path)


def write_csv(path: Path, pairs: Pairs) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("en", "de"), *pairs])


WRITERS: dict[str, tuple[str, Callable[[Path, Pairs], None]]] = {
    "flat json": ("json", write_flat_json),
    "nested json": ("json", write_nested_json),
    "flat parquet": ("parquet", write_flat_parquet),
    "nested parquet": ("parquet", write_nested_parquet),
    "csv": ("csv", write_csv),
}


def write_all(folder: Path, kind: str, splits: dict[str, Pairs] = SPLITS) -> dict[str, Any]:
    """Writes one file per split; returns the options that open them."""
    path, write = WRITERS[kind]
    folder.mkdir(exist_ok=True)
    for split, pairs in splits.items():
        write(folder / f"{split}.{path}", pairs)
    files = {split: str(folder / f"{split}.{path}") for split in splits}
    return {"path": path, "data_files": files, "source": "en", "target": "de"}


def refusal(action: Callable[[], object]) -> str:
    with pytest.raises(UserError) as caught:
        action()
    return str(caught.value)


def all_pairs(splits: Splits) -> dict[str, Pairs]:
    assert splits.test is not None
    return {"train": list(splits.train[0][0]), "validation": list(splits.valid), "test": list(splits.test)}


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("kind", WRITERS)
def test_local_files(tmp_path: Path, kind: str, streaming: bool) -> None:
    splits = open_hub(**write_all(tmp_path / "files", kind), streaming=streaming)
    assert all_pairs(splits) == SPLITS
    assert all_pairs(splits) == SPLITS, "a corpus can be read again"
    splits.check()


@pytest.mark.parametrize("streaming", [False, True])
def test_columns_of_other_names_and_the_other_direction(tmp_path: Path, streaming: bool) -> None:
    request = write_all(tmp_path / "files", "flat parquet")
    splits = open_hub(**{**request, "source": "en-GB", "source_column": "en"}, streaming=streaming)
    assert list(splits.valid) == VALID
    splits = open_hub(**{**request, "source": "de", "target": "en"}, streaming=streaming)
    assert list(splits.valid) == [(de, en) for en, de in VALID]


def test_nested_column_of_another_name(tmp_path: Path) -> None:
    table = pa.table({"pair": [{"src": "one", "tgt": "eins"}], "translation": ["no language inside"]})
    pq.write_table(table, tmp_path / "train.parquet")
    splits = open_hub(
        path="parquet",
        data_files={"train": str(tmp_path / "train.parquet")},
        source="en",
        target="de",
        translation_column="pair",
        source_column="src",
        target_column="tgt",
        valid_split="train",
        test_split=None,
    )
    assert list(splits.valid) == TEST
    assert splits.test is None


def test_a_plain_column_may_be_called_translation(tmp_path: Path) -> None:
    rows = {"text": ["one"], "translation": ["eins"]}
    pq.write_table(pa.table(rows), tmp_path / "train.parquet")
    splits = open_hub(
        path="parquet",
        data_files={"train": str(tmp_path / "train.parquet")},
        source="en",
        target="de",
        source_column="text",
        target_column="translation",
        valid_split="train",
        test_split=None,
    )
    assert list(splits.valid) == TEST


def test_plain_columns_take_precedence_over_a_nested_one_with_the_same_languages(tmp_path: Path) -> None:
    rows = {"en": ["one"], "de": ["eins"], "translation": [{"en": "machine-made", "de": "maschinell"}]}
    pq.write_table(pa.table(rows), tmp_path / "train.parquet")
    request: dict[str, Any] = {"path": "parquet", "data_files": {"train": str(tmp_path / "train.parquet")}}
    request |= {"source": "en", "target": "de", "valid_split": "train", "test_split": None}
    assert list(open_hub(**request).valid) == TEST
    assert list(open_hub(**request, translation_column="translation").valid) == [("machine-made", "maschinell")]


def test_translation_feature_of_the_library(tmp_path: Path) -> None:
    features = datasets.Features({"translation": datasets.Translation(languages=["en", "de"])})
    rows = [{"translation": {"en": en, "de": de}} for en, de in TEST]
    datasets.Dataset.from_list(rows, features=features).to_parquet(tmp_path / "train.parquet")
    data_files = {"train": str(tmp_path / "train.parquet")}
    splits = open_hub(
        path="parquet", data_files=data_files, source="de", target="en", valid_split="train", test_split=None
    )
    assert list(splits.valid) == [("eins", "one")]


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.null()])
def test_missing_values_are_blank(tmp_path: Path, kind: pa.DataType, streaming: bool) -> None:
    rows = {"en": pa.array(["one", None, "three"]), "de": pa.array([None, None, None], kind)}
    pq.write_table(pa.table(rows), tmp_path / "train.parquet")
    splits = open_hub(
        path="parquet",
        data_files={"train": str(tmp_path / "train.parquet")},
        source="en",
        target="de",
        valid_split="train",
        test_split=None,
        streaming=streaming,
    )
    assert list(splits.valid) == [("one", ""), ("", ""), ("three", "")]


def test_patterns_lists_and_folders_of_files(tmp_path: Path) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    for part in range(3):
        write_flat_json(folder / f"train-{part}.json", TRAIN[part * 10 : part * 10 + 10])
    write_flat_json(folder / "validation.json", VALID)
    by_pattern = open_hub(
        path="json",
        data_files={"train": str(folder / "train-*.json"), "validation": [str(folder / "validation.json")]},
        source="en",
        target="de",
        test_split=None,
    )
    assert list(by_pattern.train[0][0]) == TRAIN[:30]
    by_folder = open_hub(path=str(folder), source="en", target="de", test_split=None)
    assert list(by_folder.train[0][0]) == TRAIN[:30]
    assert list(by_folder.valid) == VALID


def test_cut_and_joined_splits(tmp_path: Path) -> None:
    request = write_all(tmp_path / "files", "flat json")
    splits = open_hub(**request, train_split="train[5:]+test", valid_split="train[:5]", test_split=None)
    assert list(splits.train[0][0]) == TRAIN[5:] + TEST
    assert list(splits.valid) == TRAIN[:5]
    assert splits.valid.fingerprint != open_hub(**request, valid_split="train[:6]").valid.fingerprint
    message = refusal(lambda: open_hub(**request, valid_split="train[:5]", streaming=True))
    assert "data.valid_split=train[:5]" in message
    assert "data.streaming=false" in message


@pytest.mark.parametrize("streaming", [False, True])
def test_fingerprints(tmp_path: Path, streaming: bool) -> None:
    request = write_all(tmp_path / "a", "flat json")

    def fingerprint(corpus: Corpus) -> str:
        assert [file.sha256 for file in corpus.files] == [
            hashlib.sha256(Path(file.path).read_bytes()).hexdigest() for file in corpus.files
        ]
        assert len(corpus.files) == 1
        return corpus.fingerprint

    first = fingerprint(open_hub(**request, streaming=streaming).valid)
    copied = write_all(tmp_path / "b", "flat json")
    assert fingerprint(open_hub(**copied, streaming=streaming).valid) == first, "the place does not matter"
    turned = {**request, "source": "de", "target": "en"}
    assert fingerprint(open_hub(**turned, streaming=streaming).valid) != first
    changed = write_all(tmp_path / "c", "flat json", {**SPLITS, "validation": TEST})
    assert fingerprint(open_hub(**changed, streaming=streaming).valid) != first


def test_remote_files_are_identified_by_address_or_local_copy(tmp_path: Path) -> None:
    request = write_all(tmp_path / "files", "flat json")
    local, streamed = (open_hub(**request, streaming=streaming).valid for streaming in (False, True))
    assert isinstance(local, hub.HubCorpus)
    assert isinstance(streamed, hub.HubCorpus)
    local.origin = streamed.origin = ["hf://datasets/owner/name@0123abc/valid.json"]
    (copy,) = local.files
    assert copy.path.endswith(".arrow")
    assert copy.sha256 == hashlib.sha256(Path(copy.path).read_bytes()).hexdigest()
    (address,) = streamed.files
    assert (address.path, address.sha256) == ("hf://datasets/owner/name@0123abc/valid.json", None)
    before = streamed.fingerprint
    del streamed.__dict__["files"]
    streamed.origin = ["hf://datasets/owner/name@4567def/valid.json"]
    assert streamed.fingerprint != before, "another commit may be another text"


# ------------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("kind", ["flat json", "nested parquet"])
def test_missing_column_names_the_nearest(tmp_path: Path, kind: str, streaming: bool) -> None:
    request = write_all(tmp_path / "files", kind)
    message = refusal(lambda: open_hub(**request, target_column="dee", streaming=streaming))
    for fact in ("data.target_column=dee", "en", "de", "did you mean de?"):
        assert fact in message
    assert ("inside translation" in message) == kind.startswith("nested")
    message = refusal(lambda: open_hub(**{**request, "source": "pl"}, streaming=streaming))
    assert "data.source_column=pl" in message


def test_missing_translation_column(tmp_path: Path) -> None:
    request = write_all(tmp_path / "files", "nested json")
    message = refusal(lambda: open_hub(**request, translation_column="translations"))
    for fact in ("data.translation_column=translations", "did you mean translation?"):
        assert fact in message


def test_column_that_is_not_text(tmp_path: Path) -> None:
    request = write_all(tmp_path / "files", "flat parquet")
    splits = open_hub(**request, target_column="score")
    message = refusal(lambda: list(splits.valid))
    for fact in ("score", "double", "not text"):
        assert fact in message
    assert refusal(splits.check)


def test_same_column_twice(tmp_path: Path) -> None:
    request = write_all(tmp_path / "files", "flat parquet")
    assert "data.target_column=en" in refusal(lambda: open_hub(**request, target_column="en"))


@pytest.mark.parametrize("streaming", [False, True])
def test_missing_split(tmp_path: Path, streaming: bool) -> None:
    request = write_all(tmp_path / "files", "flat json", {"train": TRAIN, "validation": VALID})
    message = refusal(lambda: open_hub(**request, valid_split="valdation", streaming=streaming))
    for fact in ("data.valid_split=valdation", "train, validation", "did you mean validation?"):
        assert fact in message
    message = refusal(lambda: open_hub(**request, streaming=streaming))
    for fact in ("data.test_split=test", "train, validation", "data.test_split=null"):
        assert fact in message
    assert open_hub(**request, streaming=streaming, test_split=None).test is None


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("kind", ["flat parquet", "flat json", "csv"])
def test_empty_file(tmp_path: Path, kind: str, streaming: bool) -> None:
    request = write_all(tmp_path / "files", kind)
    empty = Path(request["data_files"]["validation"])
    if kind == "flat parquet":
        pq.write_table(pa.schema({"en": pa.string(), "de": pa.string()}).empty_table(), empty)
    else:
        empty.write_text("en,de\n" if kind == "csv" else "")
    message = refusal(lambda: list(open_hub(**request, streaming=streaming).valid))
    assert request["path"] in message
    assert "empty" in message


@pytest.mark.parametrize("streaming", [False, True])
def test_csv_cells_are_text_whatever_they_look_like(tmp_path: Path, streaming: bool) -> None:
    pairs = [("None", "NA"), ("null", "nan"), ("12", "7.50"), ("<NA>", "#N/A"), ("true", "1e3")]
    request = write_all(tmp_path / "files", "csv", {**SPLITS, "train": pairs})
    assert list(open_hub(**request, streaming=streaming).train[0][0]) == pairs


def test_an_empty_parquet_file_is_named_with_its_split(tmp_path: Path) -> None:
    request = write_all(tmp_path / "files", "flat parquet")
    empty = Path(request["data_files"]["test"])
    pq.write_table(pa.schema({"en": pa.string(), "de": pa.string()}).empty_table(), empty)
    message = refusal(lambda: open_hub(**request))
    assert f"data.data_files={{test: {empty}}}" in message


def test_string_views_are_text(tmp_path: Path) -> None:
    request = write_all(tmp_path / "files", "flat parquet") | {"path": "arrow"}
    for split, file in request["data_files"].items():
        columns = {
            name: pa.array([pair[i] for pair in SPLITS[split]], pa.string_view()) for i, name in enumerate(("en", "de"))
        }
        table = pa.table(columns)
        with pa.ipc.new_stream(file, table.schema) as writer:
            writer.write_table(table)
    assert all_pairs(open_hub(**request)) == SPLITS


@pytest.mark.parametrize("files", [5, {"a": "b"}, [5]])
def test_data_files_that_are_not_names(files: object) -> None:
    request = {"path": "json", "data_files": {"train": files}, "source": "en", "target": "de"}
    message = refusal(lambda: open_hub(**request))
    assert f"data.data_files={{train: {files}}}: give the name of a file" in message


def test_empty_split(tmp_path: Path) -> None:
    request = write_all(tmp_path / "files", "flat json")
    message = refusal(lambda: open_hub(**request, valid_split="train[:0]"))
    assert "train[:0] (json)" in message
    assert "empty" in message


def test_files_that_are_not_there(tmp_path: Path) -> None:
    request = write_all(tmp_path / "files", "flat json")
    train = str(tmp_path / "files" / "train.json")

    def with_train(file: str) -> str:
        return refusal(lambda: open_hub(**{**request, "data_files": {**request["data_files"], "train": file}}))

    assert f"{train}l: no such file; did you mean train.json?" in with_train(train + "l")
    assert f"{tmp_path / 'files'}: is a directory" in with_train(str(tmp_path / "files"))
    assert "no file matches what is given for train" in with_train(str(tmp_path / "files" / "*.txt"))
    assert str(tmp_path / "absent") in refusal(
        lambda: open_hub(path=f"{tmp_path}/absent", source="en", target="de"),
    )


def test_a_format_without_files_does_not_load_stray_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_all(tmp_path, "flat json")
    monkeypatch.chdir(tmp_path)
    message = refusal(lambda: open_hub(path="json", source="en", target="de"))
    for fact in ("data.path=json", "data.data_files"):
        assert fact in message


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("path", ["json", "parquet"])
def test_damaged_file(tmp_path: Path, path: str, streaming: bool) -> None:
    (tmp_path / "bad").write_text('{"en": "one", "de": "ei')

    def read() -> None:
        splits = open_hub(
            path=path,
            data_files={"train": str(tmp_path / "bad")},
            source="en",
            target="de",
            valid_split="train",
            test_split=None,
            streaming=streaming,
        )
        list(splits.valid)

    message = refusal(read)
    assert path in message
    assert "JSON" in message if path == "json" else "parquet file" in message


def test_hub_unreachable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    message = refusal(lambda: open_hub(path="owner/a-dataset", source="en", target="de"))
    for fact in ("data.path=owner/a-dataset", "cannot be reached", "data.data_files", "HF_HUB_OFFLINE"):
        assert fact in message
    assert "\n" not in message


def test_connection_lost_while_streaming(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = open_hub(**write_all(tmp_path / "files", "flat json"), streaming=True).valid

    def broken(*_: object, **__: object) -> None:
        raise TimeoutError("timed out")

    monkeypatch.setattr(datasets.IterableDataset, "iter", lambda *_, **__: iter(broken, None))
    assert "cannot be reached (timed out)" in refusal(lambda: list(corpus))


def test_dataset_that_is_a_script(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise RuntimeError("Dataset scripts are no longer supported, but found x.py")

    monkeypatch.setattr(hub, "load_dataset_builder", refuse)
    message = refusal(lambda: open_hub(path="owner/x", source="en", target="de"))
    for fact in ("data.path=owner/x", "x.py", "refs/convert/parquet"):
        assert fact in message
