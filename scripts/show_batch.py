"""Prints a training batch with its masks, as the model receives it; takes the options of translator.train.

python scripts/show_batch.py data=demo
python scripts/show_batch.py data=text data.train=corpora/train data.valid=corpora/valid
"""

import sys

from torch import Tensor

from translator import cli
from translator.build.data import build_loader, prepare_data
from translator.command import exit_code
from translator.config import Config
from translator.training.distributed import Ranks

MAX_ROWS = 4
MAX_COLUMNS = 12


def show(config: Config) -> None:
    data = prepare_data(config)
    with build_loader(config, data, Ranks()) as loader:
        batch = next(loader)
    rows = range(min(MAX_ROWS, len(batch)))
    print(f"{len(batch)} pairs, {batch.num_target_tokens} target tokens, {batch.padding_share:.1%} padding")
    parts = (
        ("source", batch.source, batch.source_mask, data.tokenizer.source_pieces),
        ("target_in", batch.target_in, batch.target_mask, data.tokenizer.target_pieces),
        ("target_out", batch.target_out, batch.target_mask, data.tokenizer.target_pieces),
    )
    for name, ids, mask, pieces in parts:
        print(f"\n{name} {tuple(ids.shape)}, last columns; mask 1 = may be attended to")
        for row in rows:
            print(f"  pieces {' '.join(pieces(ids[row, -MAX_COLUMNS:].tolist()))}")
            print(f"  ids    {_numbers(ids[row])}")
            print(f"  mask   {_numbers(mask[row].int())}")


def _numbers(values: Tensor) -> str:
    return " ".join(f"{value:4d}" for value in values[-MAX_COLUMNS:].tolist())


def main() -> None:
    cli.main(show)


if __name__ == "__main__":
    sys.exit(exit_code("show_batch", main))
