"""HTML as text to translate and markup to keep."""

import html
from collections.abc import Sequence
from html.parser import HTMLParser

KEPT = frozenset({"script", "style", "code", "pre", "kbd", "samp", "textarea", "template", "svg", "math"})
VOID = frozenset({"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"})


# Elements in the middle of sentences. A sentence cannot be translated in pieces, and where such a tag belongs in the
# translation is not known.
INLINE = frozenset(
    {"a", "abbr", "b", "bdi", "bdo", "big", "cite", "code", "data", "del", "dfn", "em", "font", "i", "img", "ins"}
    | {"kbd", "label", "mark", "q", "s", "samp", "small", "span", "strike", "strong", "sub", "sup", "time", "tt", "u"}
    | {"var", "wbr"}
)


class HtmlText(HTMLParser):
    """Splits a document into markup and stretches of text between tags, each of which is translated separately.

    `interrupted_by` is an element in the middle of such a stretch, if there is one: the document cannot be translated.
    Code, scripts and elements with translate="no" or the class notranslate are left alone. White space around a
    stretch is kept; within it, line breaks become spaces, as in a browser.
    """

    def __init__(self, document: str) -> None:
        super().__init__(convert_charrefs=True)
        self._parts: list[str] = []  # markup, and an empty place for each stretch of text
        self._places: list[int] = []  # where the stretches go
        self.texts: list[str] = []
        self._kept: list[str] = []  # the element that is left alone, and those of the same name within it
        self.interrupted_by: str | None = None
        self._inline: str | None = None  # the inline element since the latest text; None after any other tag
        self._data: list[str] = []  # text since the latest tag; the parser gives it in pieces
        self.feed(document)
        self.close()
        self._end_text()

    def joined(self, translations: Sequence[str]) -> str:
        parts = list(self._parts)
        for place, translation in zip(self._places, translations, strict=True):
            parts[place] = html.escape(translation, quote=False)
        return "".join(parts)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._end_text()
        self._note(tag)
        self._parts.append(self.get_starttag_text() or "")
        if tag in VOID:
            return
        if self._kept:
            self._kept += [tag] * (tag == self._kept[0])
        elif tag in KEPT or _is_left_alone(dict(attrs)):
            self._kept.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._end_text()
        self._note(tag)
        self._parts.append(self.get_starttag_text() or "")

    def handle_endtag(self, tag: str) -> None:
        self._end_text()
        self._note(tag)
        self._parts.append(f"</{tag}>")
        if self._kept and tag == self._kept[0]:
            self._kept.pop()

    def handle_data(self, data: str) -> None:
        self._data.append(data)

    def _end_text(self) -> None:
        data = "".join(self._data)
        text = " ".join(data.split())
        self._data.clear()
        if any(map(str.isalnum, text)):
            if self._inline:
                self.interrupted_by = self.interrupted_by or self._inline
            self._inline = ""
        if self._kept:
            is_raw = self._kept[0] in ("script", "style")
            self._parts.append(data if is_raw else html.escape(data, quote=False))
        elif not any(map(str.isalnum, text)):
            self._parts.append(html.escape(data, quote=False))
        else:
            before = data[: len(data) - len(data.lstrip())]
            after = data[len(data.rstrip()) :]
            self._places.append(len(self._parts) + 1)
            self._parts += [before, "", after]
            self.texts.append(text)

    def _note(self, tag: str) -> None:
        if tag not in INLINE:
            self._inline = None
        elif self._inline is not None:
            self._inline = tag

    def handle_comment(self, data: str) -> None:
        self._end_text()
        self._parts.append(f"<!--{data}-->")

    def handle_decl(self, decl: str) -> None:
        self._end_text()
        self._parts.append(f"<!{decl}>")

    def handle_pi(self, data: str) -> None:
        self._end_text()
        self._parts.append(f"<?{data}>")

    def unknown_decl(self, data: str) -> None:
        self._end_text()
        self._parts.append(f"<![{data}]>")


def _is_left_alone(attributes: dict[str, str | None]) -> bool:
    return attributes.get("translate") == "no" or "notranslate" in (attributes.get("class") or "").split()
