"""HTML as text to translate and markup to keep."""

import html
from collections.abc import Sequence

from translator.serve.html_places import placed
from translator.serve.html_source import Source
from translator.serve.html_tree import Element, HtmlTree, Stretch, markup_of, text_of
from translator.serve.models import Candidate


class HtmlText:
    """Splits a document into markup and stretches of text, each of which is translated separately.

    Elements inside a stretch are taken out, and put around the words that their own words have become. Code, scripts
    and elements with translate="no" or the class notranslate are left alone. White space around a stretch is kept;
    within it, line breaks become spaces, as in a browser.
    """

    def __init__(self, document: str) -> None:
        self._parts: list[str | Source] = []
        for part in HtmlTree(document).parts:
            self._parts += [part] if isinstance(part, str) else _cut(part)
        self._sources = [part for part in self._parts if isinstance(part, Source)]
        self.texts = [source.text for source in self._sources]
        self.needs_links = any(source.marks for source in self._sources)

    @property
    def plain(self) -> str:
        """What is translated, without markup."""
        return "\n".join(self.texts)

    def joined(self, translations: Sequence[Candidate], joiner: str = " ") -> str:
        """The document with these translations of its texts; `joiner` is what the target language has between words."""
        following = iter(translations)
        return "".join(part if isinstance(part, str) else placed(part, next(following), joiner) for part in self._parts)


def _cut(stretch: Stretch) -> list[str | Source]:
    """What surrounds the text of a stretch, and the text: markup at its ends stays there, and so does white space."""
    if not any(map(str.isalnum, text_of(stretch))):
        return [markup_of(stretch)]
    nodes = list(stretch)
    before, after = [], []
    while not text_of(nodes[:1]).strip():
        before.append(markup_of([nodes.pop(0)]))
    while not text_of(nodes[-1:]).strip():
        after.append(markup_of([nodes.pop()]))
    if len(nodes) == 1 and isinstance(nodes[0], Element):
        inner = _cut(nodes[0].nodes)
        return [*before, nodes[0].start, *inner, nodes[0].end, *reversed(after)]
    text = text_of(nodes)
    before.append(html.escape(text[: len(text) - len(text.lstrip())]))
    after.append(html.escape(text[len(text.rstrip()) :]))
    return [*before, Source(nodes), *reversed(after)]
