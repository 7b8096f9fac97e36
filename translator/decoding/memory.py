"""How much memory a search needs and how much there is: batches must fit, and options that cannot are refused."""

from contextlib import suppress
from pathlib import Path

import torch

from translator.decoding.ensemble import Ensemble
from translator.errors import OptionError
from translator.models.base import Seq2Seq
from translator.schema.decode import SearchOptions

SHARE = 0.8  # of the available memory: the rest is for what the estimate leaves out
GIGABYTE = 1e9
_NUMBER = 4  # bytes of a number in single precision
_PIECE = 8  # bytes of a piece's id
# Tensors of the size of the logits: logits, log-probabilities and sums, and for samples a sorted copy with its places.
_LOGITS, _SAMPLED_LOGITS = 3, 9
_PIECES = 4  # tensors of the size of all hypotheses: running ones, finished ones and copies of both


class SearchMemory:
    """The memory available for translating a text, and how much of it each sentence needs."""

    def __init__(self, model: Seq2Seq, vocab_size: int, options: SearchOptions, device: torch.device) -> None:
        self.model = model
        self.vocab_size = vocab_size
        self.options = options
        self.num_hypotheses = options.num_hypotheses if options.sample else options.beam_size
        available = available_memory(device)
        self.num_bytes = None if available is None else int(SHARE * available)

    def needed(self, source_length: int, prefix_length: int = 0, more_hypotheses: int = 0) -> int:
        """About how many bytes the search for a sentence of so many pieces takes at its peak."""
        options, num_hypotheses = self.options, self.num_hypotheses + more_hypotheses
        longest = int(options.max_length_ratio * source_length + options.max_length_extra) + prefix_length + 1
        copies = _SAMPLED_LOGITS if options.sample else _LOGITS
        if isinstance(self.model, Ensemble):  # the log-probabilities of every member while the mean is taken
            copies += 2 * len(self.model.members)
        numbers = copies * num_hypotheses * self.vocab_size
        numbers += self.model.search_size(source_length, longest, num_hypotheses)
        return _NUMBER * numbers + _PIECE * _PIECES * num_hypotheses * longest

    def most_sentences(self, source_length: int, prefix_length: int = 0, more_hypotheses: int = 0) -> int:
        """How many sentences of this length can be translated at a time; refuses options with which none can."""
        if self.num_bytes is None:
            return 1 << 62
        needed = self.needed(source_length, prefix_length, more_hypotheses)
        if needed > self.num_bytes:
            option = "num_hypotheses" if self.options.sample else "beam_size"
            raise OptionError(
                option,
                self.num_hypotheses,
                f"a sentence of {source_length} pieces needs about {needed / GIGABYTE:.1f} GB of memory and "
                f"{self.num_bytes / GIGABYTE:.1f} GB can be used; give a smaller number, or split the sentence",
            )
        return self.num_bytes // needed


def available_memory(device: torch.device) -> int | None:
    """The bytes that can still be allocated; None where that is not known."""
    if device.type == "cuda":
        unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return torch.cuda.mem_get_info(device)[0] + unused
    if device.type != "cpu":
        return None
    limits = [limit for limit in (_of_the_machine(), _of_the_container()) if limit is not None]
    return min(limits, default=None)


def _of_the_machine(table: Path = Path("/proc/meminfo")) -> int | None:
    """What Linux considers available without swapping."""
    with suppress(OSError, ValueError):
        for line in table.read_text(encoding="ascii").splitlines():
            name, _, amount = line.partition(":")
            if name == "MemAvailable":
                return 1024 * int(amount.removesuffix("kB"))
    return None


def _of_the_container(folder: Path = Path("/sys/fs/cgroup")) -> int | None:
    """What a control group leaves (version 2); cached files can be evicted."""
    with suppress(OSError, ValueError):
        limit = int((folder / "memory.max").read_text(encoding="ascii"))  # or "max": no limit
        used = int((folder / "memory.current").read_text(encoding="ascii"))
        details = dict(line.split() for line in (folder / "memory.stat").read_text(encoding="ascii").splitlines())
        return max(0, limit - used + int(details.get("inactive_file", 0)))
    return None
