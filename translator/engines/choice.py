"""Which engine searches for the translations of a run: torch, which can do everything, or CTranslate2."""

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING

from translator.errors import OptionError, UserError
from translator.export.extras import load
from translator.schema.decode import LengthPenalty, SearchOptions, Stop

if TYPE_CHECKING:  # a server of exported models has no torch
    from translator.engines.ctranslate2 import CTranslate2Engine
    from translator.runs.loading import LoadedRun

TORCH, CTRANSLATE2, AUTO = "torch", "ctranslate2", "auto"
ENGINES = (TORCH, CTRANSLATE2, AUTO)
_REMEDY = "leave it out, or use the torch engine"


def check_options(options: SearchOptions) -> None:
    """Refuses search options that CTranslate2 does not have, or has with another meaning."""
    refused = {
        "sample": (options.sample, "CTranslate2's samples do not depend on the seed and the line alone"),
        "forbid": (options.forbid, "CTranslate2 changes all probabilities when it forbids a word"),
        "terms": (options.terms, "the ctranslate2 engine cannot enforce terms"),
        "no_repeat_ngram": (options.no_repeat_ngram, "CTranslate2 changes all probabilities when it forbids a piece"),
        "repetition_penalty": (options.repetition_penalty != 1, "the ctranslate2 engine has none"),
        "stop": (options.beam_size > 1 and options.stop is not Stop.first, "the ctranslate2 engine has `first` only"),
    }
    for name, (is_used, reason) in refused.items():
        if is_used:
            raise OptionError(name, getattr(options, name), f"{reason}; {_REMEDY}")
    is_average = options.length_penalty is LengthPenalty.average and options.alpha > 0
    if options.beam_size > 1 and not is_average:
        name = "length_penalty" if options.length_penalty is not LengthPenalty.average else "alpha"
        raise OptionError(
            name,
            getattr(options, name),
            "the ctranslate2 engine only has the average penalty with an alpha above 0; use that, or the torch engine",
        )


def choose_engine(
    engine: str, int8: bool, folders: list[Path], runs: "list[LoadedRun]", options: SearchOptions, device: str
) -> "CTranslate2Engine | None":
    """The engine that was asked for, or None for torch. `auto` is CTranslate2 where it can do what is asked for."""
    if engine not in ENGINES:
        raise OptionError("engine", engine, f"must be one of {', '.join(ENGINES)}")
    if engine == TORCH:
        if int8:
            raise OptionError("int8", int8, "the torch engine computes in float32; use the ctranslate2 engine")
        return None
    is_required = engine == CTRANSLATE2 or int8
    try:
        if len(runs) > 1:
            names = " and ".join(map(str, folders))
            raise UserError(f"{names}: the ctranslate2 engine has no ensembles; give one run, or use the torch engine")
        if device != "cpu":
            raise OptionError("device", device, "the ctranslate2 engine runs on the CPU; use cpu, or the torch engine")
        check_options(options.for_candidates())
        if not is_required and importlib.util.find_spec("ctranslate2") is None:
            return None
        module = load("translator.engines.ctranslate2", "the ctranslate2 engine", "fast")
        result: CTranslate2Engine = module.CTranslate2Engine(folders[0], runs[0], int8=int8, is_required=is_required)
    except UserError:
        if is_required:
            raise
        return None
    return result
