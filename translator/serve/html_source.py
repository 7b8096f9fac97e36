"""The text of a stretch of HTML without its inline elements, and where they were."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from translator.serve.html_tree import Kept, Node, Stretch, Text

Span = tuple[int, int]  # from the first character, or word, to the one after the last
CLOSING = frozenset(".,;:!?…)]}»”。，、；：！？）」』")  # no space stands in front of these


@dataclass(frozen=True)
class Mark:
    """An element and the characters that it surrounds, or markup at one place; and whether spaces are beside it."""

    start: str
    end: str
    span: Span
    marks: "list[Mark]"  # inside it
    space_before: bool
    space_after: bool

    def ends(self) -> list[int]:
        return [*self.span, *(end for inner in self.marks for end in inner.ends())]


class Source:
    """The text, in which all white space is single spaces, and the marks in their order."""

    def __init__(self, stretch: Stretch) -> None:
        self.text = ""
        self._has_space = False  # after the text so far, whatever comes next
        self._follows_kept = False
        self.marks = [self._trimmed(mark) for mark in self._read(stretch)]

    def _read(self, nodes: Sequence[Node]) -> list[Mark]:
        marks = []
        for node, following in zip(nodes, [*nodes[1:], None], strict=False):
            if isinstance(node, Text):
                self._add(node.text)
                continue
            first, space_before = len(self.text), self._has_space or not self.text
            space_after = isinstance(following, Text) and following.text[:1].isspace()
            if isinstance(node, Kept):
                marks.append(Mark(node.markup, "", (first, first), [], space_before, space_after))
            else:
                inner = self._read(node.nodes)
                marks.append(Mark(node.start, node.end, (first, len(self.text)), inner, space_before, space_after))
            self._follows_kept = isinstance(node, Kept)
        return marks

    def _add(self, text: str) -> None:
        self._has_space = self._has_space or text[:1].isspace()
        words = text.split()
        if not words:
            return
        # "Press <kbd>F1</kbd>." is translated as "Press.", without a space before the full stop.
        is_closed = self._follows_kept and not text[0].isspace() and text[0] in CLOSING
        if self.text and self._has_space and not is_closed:
            self.text += " "
        self.text += " ".join(words)
        self._has_space, self._follows_kept = text[-1].isspace(), False

    def _trimmed(self, mark: Mark) -> Mark:
        """A space between an element and the text before it was added together with the element's first word."""
        first, after = mark.span
        if first < after and self.text[first] == " ":
            first += 1
        return replace(mark, span=(first, after), marks=[self._trimmed(inner) for inner in mark.marks])
