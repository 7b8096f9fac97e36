"""Translation in a few lines of Python:

from translator import Translator

translator = Translator.load("runs/latest")
print(translator.translate(["A dog runs through the snow."]))
"""

import gc
from collections.abc import Sequence
from copy import copy
from pathlib import Path
from typing import Any, Self

import torch

from translator.config import Config
from translator.data.tokenizer import Tokenizer
from translator.decoding.line_translator import LineTranslator
from translator.decoding.target_order import refuse
from translator.devices import choose_device
from translator.engines.choice import CTRANSLATE2, TORCH, choose_engine
from translator.errors import OptionError, UserError
from translator.kernels.allocator import keep_memory
from translator.runs.directions import Direction, choose_direction
from translator.runs.latest import resolve_run
from translator.runs.loading import load_run
from translator.runs.reranking import has_candidates, load_reranker, load_tuned_reranker, require_candidates
from translator.runs.translation import translation_options
from translator.schema.decode import Stop
from translator.schema.rerank import RerankOptions

NO_SUCH_DEVICE = "there is no such device here; use auto, cpu, cuda, cuda:N or mps"


class Translator(LineTranslator):
    """A trained model that translates lines of text; see `LineTranslator` for its methods."""

    direction: Direction
    config: Config  # of the first run

    @classmethod
    def load(
        cls,
        run_dirs: str | Path | Sequence[str | Path],
        device: str = "auto",
        *,
        to: str | None = None,
        engine: str = TORCH,
        int8: bool = False,
        rerank: Sequence[str] | None = None,
        rerank_length: float = 0.0,
        **options: Any,
    ) -> Self:
        """The finished model of a training run, or of several runs with the same vocabulary as an ensemble.

        `to` is the language to translate into, for runs that have both directions; by default their data.target.
        `engine` is torch, ctranslate2 (faster on CPUs, with `stop=first`; `int8` in lower precision) or auto, which is
        ctranslate2 where it is installed and can do what is asked for. `options` are search options, such as
        beam_size=1, that differ from the run's; see `SearchOptions`. `rerank` are runs that judge the translations, as
        RUN or RUN:WEIGHT; unless it is given, they are those that `translator.tune` has written into the run, where
        the options leave them something to choose from.
        """
        if engine == CTRANSLATE2 and device == "auto":
            device = "cpu"
        given = [run_dirs] if isinstance(run_dirs, str | Path) else run_dirs
        folders = [resolve_run(Path(folder)) for folder in given]
        try:
            chosen = choose_device(device)
        except (RuntimeError, UserError) as error:
            raise OptionError("device", device, NO_SUCH_DEVICE) from error
        if chosen.type not in ("cpu", "cuda", "mps"):
            raise OptionError("device", device, NO_SUCH_DEVICE)
        runs = [load_run(folder, chosen) for folder in folders]
        for folder, run in zip(folders[1:], runs[1:], strict=True):
            if run.tokenizer.fingerprint != runs[0].tokenizer.fingerprint:
                raise UserError(
                    f"{folder}: its vocabulary is not that of {folders[0]}; an ensemble needs runs that were "
                    "trained on the same data with the same tokenizer options"
                )
            if run.config.data.reverse_target != runs[0].config.data.reverse_target:
                raise UserError(
                    f"{folder}: its data.reverse_target is not that of {folders[0]}; an ensemble writes in one order, "
                    "but one run can judge the translations of the other (--rerank)"
                )
        models = [run.model for run in runs]
        tokenizer = runs[0].tokenizer
        tokenizer.num_threads = torch.get_num_threads()
        direction = choose_direction(runs[0].config, tokenizer, to, folders[0])
        for folder, run in zip(folders[1:], runs[1:], strict=True):
            choose_direction(run.config, tokenizer, direction.target, folder)  # refuses runs for other languages
        translator = cls(models, tokenizer, chosen, **translation_options(runs[0].config, tokenizer, direction))
        translator.direction, translator.config = direction, runs[0].config
        translator.options = translator.options.changed(**options)
        if translator.reverse_target and translator.options.terms:
            refuse("terms", translator.options.terms)
        judges = RerankOptions().changed(rerank=list(rerank or []), rerank_length=rerank_length)
        languages = (direction.source, direction.target)
        is_first = direction.target == runs[0].config.data.target  # which translator.tune translates in
        if judges.judges():
            require_candidates(translator.options)
            translator.reranker = load_reranker(languages, judges, chosen, folders)
        elif rerank is None and len(folders) == 1 and is_first and has_candidates(translator.options):
            translator.reranker = load_tuned_reranker(languages, folders[0], chosen)
        searched = translator.options if "stop" in options else translator.options.changed(stop=Stop.first)
        translator.engine = choose_engine(engine, int8, folders, runs, searched, chosen.type)
        if translator.engine is not None:  # which has no other rule
            translator.options = searched
        return translator

    def towards(self, direction: Direction) -> Self:
        """The same model and search, for another of the run's directions."""
        assert isinstance(self.tokenizer, Tokenizer)
        other = copy(self)
        other.direction = direction
        other._forget_words()
        if direction.target != self.direction.target:  # terms and judges are for the direction that was loaded
            other.reranker = None
            other.options = self.options.changed(terms="")
        for name, value in translation_options(self.config, self.tokenizer, direction).items():
            if name != "options":
                setattr(other, name, value)
        return other

    def keep_memory(self) -> None:
        """For a process that only translates from now on: memory is not handed back, nor searched for garbage.

        torch's large blocks are only kept by an arena that all threads share, for which CTranslate2's threads would
        wait. Without the second, Python's garbage collector looks at all imported modules every few thousand
        translations (0.09 s).
        """
        if self.device.type == "cpu":
            keep_memory(threads_share=self.engine is None)
        gc.freeze()
