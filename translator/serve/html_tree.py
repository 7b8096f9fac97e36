"""HTML as a sequence of markup and stretches of text with the inline elements inside them.

Block elements separate stretches. An inline element is part of a stretch if it begins and ends there; any other tag,
such as that of a link around paragraphs or one without its counterpart, separates stretches too.
"""

import html
from collections.abc import Sequence
from dataclasses import dataclass, field
from html.parser import HTMLParser

from translator.serve.refusals import Refusal

VOID = frozenset({"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"})
INLINE = frozenset(
    {"a", "abbr", "b", "bdi", "bdo", "big", "cite", "code", "data", "del", "dfn", "em", "font", "i", "img", "ins"}
    | {"kbd", "label", "mark", "math", "q", "s", "samp", "small", "span", "strike", "strong", "sub", "sup", "svg"}
    | {"time", "tt", "u", "var", "wbr"}
)
KEPT = frozenset({"script", "style", "code", "pre", "kbd", "samp", "textarea", "template", "svg", "math"})
MOST_DEPTH = 50  # inline elements inside one another …
MOST_INLINE = 1_000  # … and all those of a document


@dataclass
class Text:
    text: str


@dataclass
class Kept:
    """Markup in the middle of text that is not looked into: an image, a comment, code, what is not to be translated."""

    markup: str


@dataclass
class Separator(Kept):
    """Markup inside elements that are split by it."""


@dataclass
class Element:
    start: str  # its tags
    end: str = ""
    nodes: "list[Node]" = field(default_factory=list)
    is_split: bool = False  # by a block element, or by an element that is not inside it as a whole


Node = Text | Kept | Element
Stretch = list[Node]


class HtmlTree(HTMLParser):
    """`parts` are markup and stretches, in the order of the document."""

    def __init__(self, document: str) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str | Stretch] = [[]]
        self._open: list[tuple[str, Element]] = []  # inline elements, with their names
        self._kept: list[str] = []  # the element that is left alone, and those of the same name within it
        self._markup: list[str] = []  # of that element
        self._num_inline = 0
        self.feed(document)
        self.close()
        self._separate("".join(self._markup))  # of an element that does not end
        for _, element in self._open:
            element.is_split = True
        self.parts = [part for one in self.parts for part in ([one] if isinstance(one, str) else _opened(one))]

    # ------------------------------------------------------------------------------------------ what the parser calls

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        markup = self.get_starttag_text() or ""
        if self._kept:
            self._markup.append(markup)
            self._kept += [tag] * (tag == self._kept[0] and tag not in VOID)
        elif tag in VOID:
            self._add_markup(tag, markup)
        elif tag in KEPT or _is_left_alone(dict(attrs)):
            self._kept, self._markup = [tag], [markup]
        elif tag in INLINE:
            element = Element(markup)
            self._nodes().append(element)
            self._open.append((tag, element))
            self._num_inline += 1
            if len(self._open) > MOST_DEPTH or self._num_inline > MOST_INLINE:
                raise Refusal(
                    400,
                    f"the HTML has more than {MOST_DEPTH} inline elements inside one another, or more than "
                    f"{MOST_INLINE:,} in all (<{tag}>); send the document in parts",
                )
        else:
            self._separate(markup)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        markup = self.get_starttag_text() or ""
        if self._kept:
            self._markup.append(markup)
        else:
            self._add_markup(tag, markup)

    def handle_endtag(self, tag: str) -> None:
        markup = f"</{tag}>"
        if self._kept:
            self._markup.append(markup)
            if tag == self._kept[0]:
                self._kept.pop()
            if not self._kept:
                self._add_markup(tag, "".join(self._markup))
                self._markup = []
        elif any(tag == name for name, _ in self._open):
            self._close_inline(tag, markup)
        else:
            self._separate(markup)

    def handle_data(self, data: str) -> None:
        if self._kept:
            is_raw = self._kept[0] in ("script", "style")
            self._markup.append(data if is_raw else html.escape(data, quote=False))
        else:
            self._nodes().append(Text(data))

    def handle_comment(self, data: str) -> None:
        self._add_kept(f"<!--{data}-->")

    def handle_decl(self, decl: str) -> None:
        self._add_kept(f"<!{decl}>")

    def handle_pi(self, data: str) -> None:
        self._add_kept(f"<?{data}>")

    def unknown_decl(self, data: str) -> None:
        self._add_kept(f"<![{data}]>")

    # ------------------------------------------------------------------------------------------------ what they do

    def _nodes(self) -> list[Node]:
        """Where the next node goes: into the innermost element that is open."""
        if self._open:
            return self._open[-1][1].nodes
        assert isinstance(self.parts[-1], list)
        return self.parts[-1]

    def _add_kept(self, markup: str) -> None:
        if self._kept:
            self._markup.append(markup)
        else:
            self._nodes().append(Kept(markup))

    def _add_markup(self, tag: str, markup: str) -> None:
        if tag in INLINE:
            self._nodes().append(Kept(markup))
        else:
            self._separate(markup)

    def _separate(self, markup: str) -> None:
        """Markup at which a stretch ends. If elements are open, it stays with them until they turn out to be split."""
        for _, element in self._open:
            element.is_split = True
        if self._open:
            self._nodes().append(Separator(markup))
        else:
            self.parts += [markup, []]

    def _close_inline(self, tag: str, markup: str) -> None:
        """Ends an element. Those that were opened inside it and not ended are split, and therefore so is it."""
        while True:
            name, element = self._open.pop()
            if name == tag:
                element.end = markup
                # A footnote or an exponent is not part of the word before it.
                if tag == "sup" and not element.is_split and not any(map(str.isalpha, text_of(element.nodes))):
                    self._nodes()[-1] = Kept(markup_of([element]))
                return
            element.is_split = True
            for _, outer in self._open:
                outer.is_split = True


def text_of(nodes: Sequence[Node]) -> str:
    texts = []
    for node in nodes:
        if isinstance(node, Text):
            texts.append(node.text)
        elif isinstance(node, Element):
            texts.append(text_of(node.nodes))
    return "".join(texts)


def markup_of(nodes: Sequence[Node]) -> str:
    """The nodes as they are, untranslated."""
    parts = []
    for node in nodes:
        if isinstance(node, Text):
            parts.append(html.escape(node.text, quote=False))
        elif isinstance(node, Element):
            parts.append(node.start + markup_of(node.nodes) + node.end)
        else:
            parts.append(node.markup)
    return "".join(parts)


def _opened(stretch: Stretch) -> list[str | Stretch]:
    """A stretch without its split elements: their tags and what splits them are markup between stretches."""
    parts: list[str | Stretch] = []
    current: Stretch = []
    for node in stretch:
        if isinstance(node, Separator):
            parts += [current, node.markup]
        elif isinstance(node, Element) and node.is_split:
            parts += [current, node.start, *_opened(node.nodes), node.end]
        else:
            current.append(node)
            continue
        current = []
    return [part for part in [*parts, current] if part]


def _is_left_alone(attributes: dict[str, str | None]) -> bool:
    return attributes.get("translate") == "no" or "notranslate" in (attributes.get("class") or "").split()
