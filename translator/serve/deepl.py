"""The part of DeepL's interface that its client libraries use for text: /v2/translate, languages and usage."""

from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from translator.serve.bodies import Parameters
from translator.serve.language_names import language_name
from translator.serve.refusals import Refusal
from translator.serve.service import AUTO, Service

NO_LIMIT = 1_000_000_000_000  # what DeepL gives as the limit of accounts that have none
# Unsupported options that would change the translation. Hints, such as `context` and `model_type`, may be ignored.
REFUSED = (
    "formality", "glossary_id", "glossary_ids", "style_id", "translation_memory_id", "custom_instructions",
    "ignore_tags", "splitting_tags", "non_splitting_tags",
)  # fmt: skip
SPLITS = {"0": False, "1": True, "nonewlines": True}
TAGS = ("", "html")


class DeepL:
    def __init__(self, service: Service) -> None:
        self.service = service

    @property
    def routes(self) -> list[Route]:
        return [
            Route("/v2/translate", self.translate, methods=["POST"]),
            Route("/v2/languages", self.languages, methods=["GET"]),
            Route("/v2/usage", self.usage, methods=["GET"]),
        ]

    async def translate(self, request: Request) -> JSONResponse:
        parameters = await self.service.parameters(request)
        texts, _ = parameters.texts("text", "give a list of texts to translate")
        target = parameters.text("target_lang", remedy="give the language to translate into")
        source = parameters.text("source_lang", AUTO) or AUTO
        _refuse_unsupported(parameters)
        split = str(parameters.values["split_sentences"]) if "split_sentences" in parameters else None
        if split is not None and split not in SPLITS:
            raise Refusal(400, "split_sentences: must be 0, 1 or nonewlines")
        answers = await self.service.translate(
            request,
            texts,
            source,
            target,
            is_html=parameters.choice("tag_handling", TAGS) == "html",
            split_sentences=SPLITS[split] if split is not None else None,
            target_name="target_lang",
        )
        billed = parameters.flag("show_billed_characters")
        return JSONResponse(
            {
                "translations": [
                    {"detected_source_language": answer.model.source.upper(), "text": answer.text}
                    | ({"billed_characters": len(text)} if billed else {})
                    for text, answer in zip(texts, answers, strict=True)
                ]
            }
        )

    async def languages(self, request: Request) -> JSONResponse:
        # DeepL's own library sends the parameter in the body of a GET request.
        kind = (await self.service.parameters(request)).choice("type", ("source", "target"))
        codes = self.service.catalogue.sources if kind == "source" else self.service.catalogue.targets
        extra: dict[str, Any] = {"supports_formality": False} if kind == "target" else {}
        return JSONResponse([{"language": code.upper(), "name": language_name(code), **extra} for code in codes])

    async def usage(self, request: Request) -> JSONResponse:
        """The characters accepted since the server was started."""
        await self.service.parameters(request)
        return JSONResponse({"character_count": self.service.metrics.num_characters, "character_limit": NO_LIMIT})


def _refuse_unsupported(parameters: Parameters) -> None:
    for name in REFUSED:
        value = parameters.values.get(name)
        if value not in (None, "", [], "default") and not str(value).startswith("prefer_"):
            raise Refusal(400, f"{name}: not available on this server; leave it out")
    if not parameters.flag("outline_detection", True):  # then only `splitting_tags` would separate sentences
        raise Refusal(400, "outline_detection: must be true on this server; leave it out")
