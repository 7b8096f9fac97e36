"""Datasets that cannot be used: the message names the option, its value and the remedy."""

from collections.abc import Callable
from pathlib import Path

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.hub_files import TRAIN, VALID, write_all
from translator.data import hub
from translator.data.hub import open_hub
from translator.errors import UserError

pytestmark = pytest.mark.usefixtures("own_datasets_cache")


def refusal(action: Callable[[], object]) -> str:
    with pytest.raises(UserError) as caught:
        action()
    return str(caught.value)


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


def test_a_cut_split_cannot_be_streamed(tmp_path: Path) -> None:
    request = write_all(tmp_path / "files", "flat json")
    message = refusal(lambda: open_hub(**request, valid_split="train[:5]", streaming=True))
    assert "data.valid_split=train[:5]" in message
    assert "data.streaming=false" in message


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


def test_an_empty_parquet_file_is_named_with_its_split(tmp_path: Path) -> None:
    request = write_all(tmp_path / "files", "flat parquet")
    empty = Path(request["data_files"]["test"])
    pq.write_table(pa.schema({"en": pa.string(), "de": pa.string()}).empty_table(), empty)
    message = refusal(lambda: open_hub(**request))
    assert f"data.data_files={{test: {empty}}}" in message


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


def test_a_name_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    request = write_all(tmp_path / "files", "flat json")
    assert "data.name=\\:" in refusal(lambda: open_hub(**request, name="\\"))
