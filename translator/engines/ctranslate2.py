"""Search with CTranslate2. Its translations are those of our own search, up to the rounding of float32.

Both searches keep the same hypotheses and stop by the same rule when scores are divided by the length. CTranslate2
only has one maximum length per batch, and other rules at the minimum and maximum length, so it searches without these
limits; sentences for which a limit matters, or that have a forced prefix, are left to torch.
"""

from collections.abc import Sequence
from pathlib import Path

import ctranslate2
import torch

from translator.decoding.hypotheses import Hypothesis, hypothesis, length_limit, length_penalty
from translator.engines.cache import converted
from translator.engines.choice import check_options
from translator.errors import OptionError
from translator.export.ctranslate2_model import MAX_POSITIONS, convert, supported
from translator.ids import BOS, PAD
from translator.runs.directory import RunDirectory
from translator.runs.loading import LoadedRun
from translator.schema.decode import SearchOptions


class CTranslate2Engine:
    """Finds the hypotheses of batches of sentences; `is_required` if the user wants this engine and no other."""

    def __init__(self, folder: Path, run: LoadedRun, *, int8: bool = False, is_required: bool = True) -> None:
        self.is_required = is_required
        compute_type = "int8" if int8 else "float32"
        self.name = f"ctranslate2 {compute_type}"
        tokenizer = run.tokenizer
        self.source_pieces = tokenizer.source_pieces(range(tokenizer.source_vocab_size))
        self.target_pieces = tokenizer.target_pieces(range(tokenizer.target_vocab_size))
        self.target_ids = {piece: number for number, piece in enumerate(self.target_pieces)}
        self.never = {self.target_pieces[piece] for piece in (PAD, BOS, *tokenizer.tag_ids.values())}
        supported(run.model)
        self._folder = converted(  # kept, since a temporary folder is removed together with it
            RunDirectory(folder),
            run,
            compute_type,
            lambda path: convert(run.model, path, self.source_pieces, self.target_pieces, compute_type),
        )
        num_workers = torch.get_num_threads()  # as many batches at a time as torch would search in
        self.translator = ctranslate2.Translator(
            str(self._folder.path), compute_type=compute_type, inter_threads=num_workers, intra_threads=1
        )

    def accepts(self, options: SearchOptions) -> bool:
        """Whether it can search with these options; where no other engine will do, they are refused by name."""
        try:
            check_options(options)
        except OptionError:
            if self.is_required:
                raise
            return False
        return True

    def find(self, sources: Sequence[Sequence[int]], options: SearchOptions) -> list[list[Hypothesis] | None]:
        """The hypotheses of each source, which ends with EOS; None where our own search has to find them."""
        limits = [length_limit(len(source) - 1, options) for source in sources]
        fitting = [
            index
            for index, (source, (_, longest)) in enumerate(zip(sources, limits, strict=True))
            if max(longest + 1, len(source)) <= MAX_POSITIONS
        ]
        found: list[list[Hypothesis] | None] = [None] * len(sources)
        if fitting:
            searched = self._search(
                [sources[index] for index in fitting], [limits[index] for index in fitting], options
            )
            for index, hypotheses in zip(fitting, searched, strict=True):
                found[index] = hypotheses
        return found

    def _search(
        self, sources: Sequence[Sequence[int]], limits: Sequence[tuple[int, int]], options: SearchOptions
    ) -> list[list[Hypothesis] | None]:
        """Like `find`, for sources that fit the table of positions and the length limits of their outputs."""
        is_greedy = options.beam_size == 1
        results = self.translator.translate_batch(
            [[self.source_pieces[piece] for piece in source[:-1]] for source in sources],
            beam_size=options.beam_size,
            num_hypotheses=options.beam_size,  # all that have finished: the longest tells when the search ended
            length_penalty=0 if is_greedy else options.alpha,
            max_input_length=0,
            min_decoding_length=0,
            max_decoding_length=max(longest for _, longest in limits),
            return_scores=True,
            max_batch_size=0,
        )
        found: list[list[Hypothesis] | None] = []
        for result, (shortest, longest) in zip(results, limits, strict=True):
            outputs = result.hypotheses
            if not all(shortest <= len(row) < longest and not self.never.intersection(row) for row in outputs):
                found.append(None)
                continue
            hypotheses = []
            for pieces, value in zip(outputs[: options.num_hypotheses], result.scores, strict=False):
                row = [self.target_ids[piece] for piece in pieces]
                penalty = float(length_penalty(len(row) + 1.0, options))
                score, normalized = (value, value / penalty) if is_greedy else (value * penalty, value)
                hypotheses.append(hypothesis(row, score, normalized))
            found.append(hypotheses)
        return found
