"""The estimate of a search's memory against what its tensors actually use, and what follows from it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.weak import WeakTensorKeyDictionary

from support.fake_models import ByteTokenizer, CopyModel, batch_of
from translator.decoding import memory
from translator.decoding.line_translator import LineTranslator
from translator.decoding.memory import SearchMemory
from translator.decoding.search import SearchOptions, search
from translator.errors import OptionError
from translator.ids import EOS
from translator.models.base import Seq2Seq
from translator.models.lstm import LstmSeq2Seq
from translator.models.transformer import Transformer

CPU = torch.device("cpu")
VOCABULARY = 400


class PeakBytes(TorchDispatchMode):
    """The peak number of bytes held by tensors created inside the block."""

    def __init__(self) -> None:
        super().__init__()
        self.alive = WeakTensorKeyDictionary()
        self.counted: dict[int, int] = {}  # address to size of all storages in `bound`
        self.bound = 0  # at least the bytes held now: what has been freed since the last sum is still in it
        self.peak = 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = function(*args, **(kwargs or {}))
        for leaf in tree_leaves(result):
            if isinstance(leaf, Tensor):
                storage = leaf.untyped_storage()
                address, size = storage.data_ptr(), storage.nbytes()
                self.alive[leaf] = size
                if self.counted.get(address) != size:
                    self.counted[address] = size
                    self.bound += size
        if self.bound > self.peak:
            self.counted = {tensor.untyped_storage().data_ptr(): size for tensor, size in self.alive.items()}
            self.bound = sum(self.counted.values())
            self.peak = max(self.peak, self.bound)
        return result


def transformer() -> Seq2Seq:
    return Transformer(VOCABULARY, VOCABULARY, 32, 64, 4, 2, 2)


def lstm() -> Seq2Seq:
    return LstmSeq2Seq(VOCABULARY, VOCABULARY, 24, 32, 32, 1, 2)


@pytest.mark.parametrize("make", [transformer, lstm])
@pytest.mark.parametrize(("beam_size", "source_length"), [(1, 30), (6, 4), (6, 30), (60, 4), (60, 30)])
def test_the_estimate_is_close_to_what_a_search_takes(
    make: Callable[[], Seq2Seq], beam_size: int, source_length: int
) -> None:
    torch.manual_seed(1)
    model = make().eval()
    # No sentence ends early, so every cache grows to its full size.
    chosen = SearchOptions(beam_size=beam_size, min_length_ratio=2, max_length_extra=5, min_length=5)
    source, mask = batch_of([[5] * (source_length - 1) + [EOS]])
    weights = sum(parameter.nbytes for parameter in model.parameters())
    with PeakBytes() as measured:
        search(model, source, mask, chosen)
    needed = SearchMemory(model, VOCABULARY, chosen, CPU).needed(source_length)
    assert 0.7 * (measured.peak - weights) < needed < 4 * measured.peak, (needed, measured.peak)


def test_batches_become_smaller_before_anything_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer = ByteTokenizer()
    translator = LineTranslator(CopyModel(tokenizer.target_vocab_size), tokenizer, options=SearchOptions(beam_size=4))
    sizes: list[int] = []
    found = translator.tensors
    monkeypatch.setattr(translator, "tensors", lambda ids: (sizes.append(len(ids)), found(ids))[1])
    lines = [f"line {number}" for number in range(40)]
    with_room = translator.translate(lines)
    assert max(sizes) >= 20
    one = SearchMemory(translator.model, tokenizer.target_vocab_size, translator.options, CPU).needed(8)
    monkeypatch.setattr(memory, "available_memory", lambda device: 3.5 * one / memory.SHARE)
    sizes.clear()
    assert translator.translate(lines) == with_room
    assert 1 <= max(sizes) <= 3
    monkeypatch.setattr(memory, "available_memory", lambda device: 0.5 * one)
    with pytest.raises(OptionError, match=r"beam_size=4: a sentence of 7 pieces needs about .* GB .* can be used"):
        translator.translate(lines)


def test_a_beam_of_thousands_is_refused_without_trying() -> None:
    translator = LineTranslator(transformer(), ByteTokenizer(), options=SearchOptions(beam_size=50_000))
    with pytest.raises(OptionError, match="beam_size=50000: a sentence of"):
        translator.translate(["a sentence of some words"])


def test_the_limits_of_the_machine_and_its_container_are_read(tmp_path: Path) -> None:
    (tmp_path / "meminfo").write_text("MemTotal: 9000 kB\nMemAvailable:    5000 kB\n", encoding="ascii")
    assert memory._of_the_machine(tmp_path / "meminfo") == 5_120_000
    assert memory._of_the_machine(tmp_path / "missing") is None
    assert memory._of_the_container(tmp_path) is None
    for name, text in (("max", "1000\n"), ("current", "700\n"), ("stat", "anon 1\ninactive_file 200\n")):
        (tmp_path / f"memory.{name}").write_text(text, encoding="ascii")
    assert memory._of_the_container(tmp_path) == 500
    (tmp_path / "memory.max").write_text("max\n", encoding="ascii")
    assert memory._of_the_container(tmp_path) is None
    assert memory.available_memory(torch.device("mps")) is None
