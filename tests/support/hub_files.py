"""A small parallel corpus in the file formats that `datasets` reads."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

TRAIN = [(f"sentence {number}", f"Satz {number}") for number in range(2_345)]  # more than two batches
VALID = [("Grüße 你好", "👩‍🚀\u2028 x"), ("", "zwei")]
TEST = [("one", "eins")]
SPLITS = {"train": TRAIN, "validation": VALID, "test": TEST}
Pairs = list[tuple[str, str]]


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
