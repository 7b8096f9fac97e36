"""The demo corpus as training, validation and test splits."""

from pathlib import Path

from translator.data.corpus import Splits, open_text
from translator.demo import files


def open_demo(
    *, folder: str, source: str, target: str, seed: int, num_train: int, num_valid: int, num_test: int
) -> Splits:
    """Opens the demo corpus, generating it first if it is not in the folder yet."""
    files.prepare(
        Path(folder),
        source=source,
        target=target,
        seed=seed,
        num_train=num_train,
        num_valid=num_valid,
        num_test=num_test,
    )
    train, valid, test = (str(Path(folder) / split) for split in ("train", "valid", "test"))
    return open_text(source=source, target=target, train=[train], train_weights=None, valid=valid, test=test)
