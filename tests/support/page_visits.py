"""Visits of a page in a real browser, Chromium or Chrome, with everything that it logs and requests."""

import importlib.util
import json
import re
import shutil
from typing import Any

import pytest

BROWSERS = ("chromium", "chromium-browser", "google-chrome")  # as Debian, Ubuntu and Google name theirs


def find_browser() -> str | None:
    """The first of them that is installed."""
    return next(filter(None, map(shutil.which, BROWSERS)), None)


CHROMIUM = find_browser()
NEEDS_BROWSER = [
    pytest.mark.slow,
    pytest.mark.skipif(
        CHROMIUM is None, reason=f"none of {', '.join(BROWSERS)} is installed (apt-get install chromium)"
    ),
    pytest.mark.skipif(importlib.util.find_spec("playwright") is None, reason="playwright is not installed"),
]
FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
LINE = "a dog runs."
FAILED = "Failed to load resource"  # what the browser itself says of every refused request


def cut_labels(page: Any) -> list[str]:
    """The labels of charts that do not fit into their drawings. Slanted ones are left out."""
    found: list[str] = page.evaluate(
        """() => [...document.querySelectorAll(".plot svg text:not([transform])")].filter((text) => {
          const [own, drawing] = [text.getBoundingClientRect(), text.ownerSVGElement.getBoundingClientRect()];
          return own.right > drawing.right + 0.5 || own.left < drawing.left - 0.5;
        }).map((text) => `${text.textContent} (${text.closest("figure").innerText.slice(0, 40)})`)"""
    )
    return found


class Visit:
    """An opened page, and every error it logged or foreign request it made."""

    def __init__(self, browser: Any, address: str, **options: Any) -> None:
        self.context = browser.new_context(**{"viewport": {"width": 1100, "height": 900}, **options})
        self.page = self.context.new_page()
        self.complaints: list[str] = []
        self.requests: list[Any] = []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", self._note)
        self.base = address.partition("#")[0]
        self.page.goto(address)

    def _note(self, request: Any) -> None:
        self.requests.append(request)
        if not request.url.startswith((self.base, "data:")):
            self.complaints.append(request.url)

    @property
    def questions(self) -> list[dict[str, Any]]:
        return [json.loads(one.post_data) for one in self.requests if one.url.endswith("/v1/translate")]

    def type(self, text: str) -> None:
        self.page.fill("#text", text)

    def expect(self, translation: str) -> None:
        """Waits for this text, lines separated by spaces."""
        from playwright.sync_api import expect

        expect(self.page.locator("#translation")).to_have_text(translation, timeout=60_000)
        expect(self.page.locator("#translation")).not_to_have_class("waiting", timeout=60_000)

    def expect_text(self, selector: str, text: str) -> None:
        """Waits until the text of an element contains this."""
        from playwright.sync_api import expect

        expect(self.page.locator(selector)).to_contain_text(text, timeout=60_000)

    def translate(self, text: str = LINE) -> None:
        self.type(text)
        self.expect(text)

    def unit(self, side: str, text: str) -> Any:
        return self.page.locator(f".{side} .unit").filter(has_text=re.compile(f"^{re.escape(text)}$")).first

    def units(self, side: str) -> list[str]:
        return list(self.page.locator(f".{side} .unit").all_inner_texts())

    def open(self, panel: str, wait_for: str) -> None:
        self.page.click(f"#{panel} summary")
        self.page.wait_for_selector(f"#{panel} {wait_for}", timeout=60_000)
