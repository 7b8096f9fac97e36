"""What the `translate-serve` command does once its options are known."""

import argparse
import logging
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from translator.command import say
from translator.errors import UserError
from translator.export.extras import load
from translator.export.folder import DESCRIPTION, TRANSLATION
from translator.schema.decode import SearchOptions
from translator.schema.flags import given, naming_flags
from translator.schema.rerank import NONE, RerankOptions
from translator.schema.serve import ServerOptions
from translator.serve.application import application
from translator.serve.keys import ApiKeys
from translator.serve.models import Catalogue, Model
from translator.serve.running import address, listen, serve
from translator.serve.service import Service

DEFAULT_MODEL = Path("runs/latest")


def run(options: argparse.Namespace) -> None:
    """Loads the models and serves until a signal arrives; raises UserError for user errors."""
    logging.basicConfig(format="translate-serve: %(message)s", level=logging.WARNING)
    with naming_flags(ServerOptions):
        limits = ServerOptions().changed(**given(options, ServerOptions))
    keys = ApiKeys.load(Path(limits.api_keys)) if limits.api_keys else None
    with closing(listen(limits.host, limits.port)) as listener:
        models = _load(options)
        service = Service(Catalogue(models), limits, keys=keys, split_sentences=options.split_sentences)
        app = application(service)
        for model in models:
            say(f"{model.source} into {model.target}: {model.description}")
        listener.listen()
        say(f"Listening on {address(listener)}; stop with Ctrl-C.")
        serve(app, service, listener)


def is_exported(folder: Path) -> bool:
    """Whether the folder is an export to CTranslate2; other exports are refused."""
    if (folder / TRANSLATION).is_file():
        return True
    if (folder / DESCRIPTION).is_file():
        raise UserError(
            f"--model {folder}: an export that cannot be served; make one with translator.export --to ctranslate2"
        )
    return False


def _load(options: argparse.Namespace) -> list[Model]:
    models: list[Model] = []
    folder_of: dict[tuple[str, str], Path] = {}
    for folder in options.model or [DEFAULT_MODEL]:
        with naming_flags(SearchOptions, "device", "engine", "int8"), naming_flags(RerankOptions):
            found = [_load_exported(folder, options)] if is_exported(folder) else _load_run(folder, options)
        for model in found:
            languages = model.source, model.target
            if languages in folder_of:
                raise UserError(
                    f"--model {folder}: {folder_of[languages]} translates {model.source} into {model.target} as well; "
                    "give one model for each pair of languages"
                )
            folder_of[languages] = folder
        models += found
    return models


def _load_run(folder: Path, options: argparse.Namespace) -> Sequence[Model]:
    from translator.serve.torch_model import load_models, set_threads  # torch, which a server of exports does not need

    if options.threads:
        set_threads(options.threads)
    search = given(options, SearchOptions) | given(options, RerankOptions)
    return load_models(folder, options.device, engine=options.engine, int8=options.int8, options=search)


def _load_exported(folder: Path, options: argparse.Namespace) -> Model:
    module = load("translator.serve.exported_model", f"--model {folder}", "fast")
    if options.device not in ("auto", "cpu"):
        raise UserError(f"--device {options.device}: an exported model runs on the CPU; give a run, or --device cpu")
    if given(options, RerankOptions).get("rerank", [NONE]) != [NONE]:
        raise UserError(f"--rerank: {folder} is an exported model, whose translations cannot be reranked; give its run")
    model: Model = module.ExportedModel(
        folder, num_threads=options.threads, int8=options.int8, options=given(options, SearchOptions)
    )
    return model
