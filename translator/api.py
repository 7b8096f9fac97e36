"""Translation in a few lines of Python:

from translator import Translator

translator = Translator.load("runs/latest")
print(translator.translate(["A dog runs through the snow."]))
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

from translator.decoding.line_translator import LineTranslator
from translator.devices import choose_device
from translator.engines.choice import CTRANSLATE2, TORCH, choose_engine
from translator.errors import OptionError, UserError
from translator.runs.latest import resolve_run
from translator.runs.loading import load_run
from translator.runs.translation import translation_options

NO_SUCH_DEVICE = "there is no such device here; use auto, cpu, cuda, cuda:N or mps"


class Translator(LineTranslator):
    """A trained model that translates lines of text; see `LineTranslator` for its methods."""

    @classmethod
    def load(
        cls,
        run_dirs: str | Path | Sequence[str | Path],
        device: str = "auto",
        *,
        engine: str = TORCH,
        int8: bool = False,
        **options: Any,
    ) -> Self:
        """The finished model of a training run, or of several runs with the same vocabulary as an ensemble.

        `engine` is torch, ctranslate2 (faster on CPUs; `int8` in lower precision) or auto, which is ctranslate2 where
        it is installed and can do what is asked for. `options` are search options, such as beam_size=1, that differ
        from the run's; see `SearchOptions`.
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
        models = [run.model for run in runs]
        translator = cls(models, runs[0].tokenizer, chosen, **translation_options(runs[0].config))
        translator.options = translator.options.changed(**options)
        translator.engine = choose_engine(engine, int8, folders, runs, translator.options, chosen.type)
        return translator
