"""The page with its security policy, and what operators need: /, /health, /metrics and /spec."""

import base64
import hashlib
import re
from importlib.resources import files

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from translator.serve.metrics import CONTENT_TYPE_LATEST
from translator.serve.page import page
from translator.serve.service import Service

_SCRIPT = re.compile(r"<script(?![^>]*\ssrc=)(?![^>]*type=\"application/json\")[^>]*>(.*?)</script>", re.DOTALL)
_STYLE = re.compile(r"<style[^>]*>(.*?)</style>", re.DOTALL)


class Site:
    def __init__(self, service: Service) -> None:
        self.service = service
        self._page = page()
        self._headers = {"Content-Security-Policy": content_security_policy(self._page), "Cache-Control": "no-cache"}
        self._spec = files("translator.serve").joinpath("openapi.json").read_bytes()

    @property
    def routes(self) -> list[Route]:
        return [
            Route("/", self.index, methods=["GET"]),
            Route("/health", self.health, methods=["GET"]),
            Route("/metrics", self.metrics, methods=["GET"]),
            Route("/spec", self.spec, methods=["GET"]),
        ]

    async def index(self, request: Request) -> Response:
        return HTMLResponse(self._page, headers=self._headers)

    async def health(self, request: Request) -> Response:
        if not self.service.batcher.is_alive:
            return JSONResponse({"error": "the server is shutting down"}, status_code=503)
        return JSONResponse({"status": "ok"})

    async def metrics(self, request: Request) -> Response:
        return Response(self.service.metrics.page(), headers={"Content-Type": CONTENT_TYPE_LATEST})

    async def spec(self, request: Request) -> Response:
        return Response(self._spec, media_type="application/json")


def content_security_policy(document: str) -> str:
    """Allows only the document's own scripts and styles, by their hashes, and requests to this server."""
    scripts, styles = (
        " ".join(f"'sha256-{_hash(text)}'" for text in pattern.findall(document)) or "'none'"
        for pattern in (_SCRIPT, _STYLE)
    )
    return (
        f"default-src 'none'; script-src {scripts}; style-src {styles}; connect-src 'self'; img-src data:; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
