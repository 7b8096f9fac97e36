"""LibreTranslate's interface: /translate, /detect, /languages and /frontend/settings."""

from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from translator.serve.detection import Detected
from translator.serve.language_names import language_name
from translator.serve.refusals import Refusal
from translator.serve.service import AUTO, Service

FORMATS = ("text", "html")


class LibreTranslate:
    def __init__(self, service: Service) -> None:
        self.service = service

    @property
    def routes(self) -> list[Route]:
        return [
            Route("/translate", self.translate, methods=["POST"]),
            Route("/detect", self.detect, methods=["POST"]),
            Route("/languages", self.languages, methods=["GET"]),
            Route("/frontend/settings", self.settings, methods=["GET"]),
        ]

    async def translate(self, request: Request) -> JSONResponse:
        service = self.service
        parameters = await service.parameters(request)
        texts, is_list = parameters.texts("q", "give the text to translate")
        source = parameters.text("source", remedy="give a language, or auto")
        target = parameters.text("target", remedy="give the language to translate into")
        num_alternatives = parameters.number("alternatives", 0, service.options.max_alternatives)
        is_html = parameters.choice("format", FORMATS) == "html"
        answers = await service.translate(
            request, texts, source, target, num_alternatives=num_alternatives, is_html=is_html
        )
        columns: dict[str, list[Any]] = {"translatedText": [answer.text for answer in answers]}
        if num_alternatives:
            columns["alternatives"] = [answer.alternatives for answer in answers]
        if source.lower() == AUTO:
            columns["detectedLanguage"] = [describe(answer.detected) for answer in answers if answer.detected]
        return JSONResponse(columns if is_list else {name: values[0] for name, values in columns.items()})

    async def detect(self, request: Request) -> JSONResponse:
        parameters = await self.service.parameters(request)
        texts, is_list = parameters.texts("q", "give the text whose language is to be detected")
        if is_list:
            raise Refusal(400, "q: must be a text")
        self.service.check_texts(texts)
        return JSONResponse([describe(detected) for detected in self.service.detector.rank(texts[0])])

    async def languages(self, request: Request) -> JSONResponse:
        catalogue = self.service.catalogue
        return JSONResponse(
            [
                {"code": code, "name": language_name(code), "targets": catalogue.targets_of(code)}
                for code in catalogue.languages
            ]
        )

    async def settings(self, request: Request) -> JSONResponse:
        first = self.service.catalogue.models[0]
        return JSONResponse(
            {
                "apiKeys": self.service.keys.are_required,
                "keyRequired": self.service.keys.are_required,
                "charLimit": self.service.options.max_characters,
                "filesTranslation": False,
                "frontendTimeout": 500,
                "language": {
                    side: {"code": code, "name": language_name(code)}
                    for side, code in (("source", first.source), ("target", first.target))
                },
                "suggestions": False,
                "supportedFilesFormat": [],
                "nbest": [
                    {"source": model.source, "target": model.target, "largest": self.service.largest_nbest(model)}
                    for model in self.service.catalogue.models
                ],
            }
        )


def describe(detected: Detected) -> dict[str, Any]:
    return {"language": detected.language, "confidence": detected.confidence}
