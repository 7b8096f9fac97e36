"""Datasets of the Hugging Face hub and local files, opened with the library `datasets`."""

import hashlib
from pathlib import Path
from typing import Any

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.hub_files import SPLITS, TEST, TRAIN, VALID, WRITERS, Pairs, write_all, write_flat_json
from translator.data import hub
from translator.data.corpus import Corpus, Splits
from translator.data.hub import open_hub

pytestmark = pytest.mark.usefixtures("own_datasets_cache")


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


@pytest.mark.parametrize("streaming", [False, True])
def test_csv_cells_are_text_whatever_they_look_like(tmp_path: Path, streaming: bool) -> None:
    pairs = [("None", "NA"), ("null", "nan"), ("12", "7.50"), ("<NA>", "#N/A"), ("true", "1e3")]
    request = write_all(tmp_path / "files", "csv", {**SPLITS, "train": pairs})
    assert list(open_hub(**request, streaming=streaming).train[0][0]) == pairs


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
    assert fingerprint(open_hub(**copied, streaming=streaming).valid) == first, "the location does not matter"
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
    assert streamed.fingerprint != before, "another commit may have another text"
