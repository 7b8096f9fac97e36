"""Inline elements in a translation: each goes around the words that its own words have become.

The text of a stretch is translated without its tags. Every word of the translation is linked to the word of the source
that the model looked at most or, where that is not known, to the one at the same share of the sentence. An element gets
the run of words in which those linked to its own outnumber the others most; elements inside it divide these words in
the same way, so everything stays properly nested. An element that no word is left for becomes empty.
"""

import html
from collections.abc import Sequence

from translator.serve.html_source import Mark, Source, Span
from translator.serve.html_words import Words, link_units
from translator.serve.models import Candidate


def placed(source: Source, translation: Candidate, joiner: str) -> str:
    """The translation as HTML, with all marks of the source."""
    words = link_units(source, translation)
    placing = _Placing(words, translation.text, has_spaces=bool(joiner))
    return placing.write(source.marks, (0, len(words.source)), (0, len(words.target)), (0, len(translation.text)))


class _Placing:
    def __init__(self, words: Words, text: str, *, has_spaces: bool) -> None:
        self.words, self.text, self.has_spaces = words, text, has_spaces

    def write(self, marks: Sequence[Mark], own: Span, room: Span, characters: Span) -> str:
        """Characters of the translation with marks. `own` are the source words around them, `room` the target words."""
        covered = [self._covered(mark) for mark in marks]
        places: dict[int, Span] = {}
        free = [room]
        for number in sorted(range(len(marks)), key=lambda number: covered[number][0] - covered[number][1]):
            if covered[number][0] < covered[number][1]:  # those with the most words come first
                places[number] = self._run(covered[number], own, room, free)
                free = [rest for gap in free for rest in _without(gap, places[number])]
            else:
                place = self._point(marks[number], room, list(places.values()))
                places[number] = (place, place)
        spans = {n: self._characters(place, marks[n], characters) for n, place in places.items()}
        parts: list[str] = []
        end = characters[0]
        for number in sorted(spans, key=lambda number: (spans[number], number)):
            mark, (first, after) = marks[number], spans[number]
            parts.append(html.escape(self.text[end:first], quote=False))
            inner = self.write(mark.marks, covered[number], places[number], spans[number])
            is_inserted = covered[number][0] == covered[number][1]
            before, behind = self._spaces(mark, first) if is_inserted else ("", "")
            parts += [before, mark.start, inner, mark.end, behind]
            end = after
        parts.append(html.escape(self.text[end : characters[1]], quote=False))
        return "".join(parts)

    def _covered(self, mark: Mark) -> Span:
        """The source words that an element contains, wholly or in part."""
        first = sum(after <= mark.span[0] for _, after in self.words.source)
        after = sum(begin < mark.span[1] for begin, _ in self.words.source)
        return (first, after) if mark.span[0] < mark.span[1] else (first, first)

    def _run(self, covered: Span, own: Span, room: Span, free: Sequence[Span]) -> Span:
        """The free target words for an element that covers these source words."""
        if covered == own and free == [room]:
            return room
        runs = [(0, 0, (0, 0))]
        for first, after in free:
            begin, value = -1, 0
            for word in range(first, after):
                if covered[0] <= self.words.links[word] < covered[1]:
                    begin, value = (word if begin < 0 else begin), value + 1
                    runs.append((value, word - begin, (begin, word + 1)))
                elif begin >= 0:
                    begin, value = (begin, value - 1) if value else (-1, 0)
        value, _, found = max(runs, key=lambda run: run[:2])  # of equally good ones the longest
        return found if value else self._same_share(covered, own, room, free)

    def _same_share(self, covered: Span, own: Span, room: Span, free: Sequence[Span]) -> Span:
        """As near as possible to the place in the room that the source words have in the sentence or element."""
        scale = (room[1] - room[0]) / max(1, own[1] - own[0])
        wanted = room[0] + round(scale * (covered[0] - own[0]))
        size = max(1, round(scale * (covered[1] - covered[0])))
        usable = [gap for gap in free if gap[0] < gap[1]] or free
        begins = [min(max(wanted, first), max(first, after - size)) for first, after in usable]
        begin, after = min(
            ((begin, after) for begin, (_, after) in zip(begins, usable, strict=True)),
            key=lambda place: abs(place[0] - wanted),
        )
        return begin, min(begin + size, after)

    def _point(self, mark: Mark, room: Span, taken: Sequence[Span]) -> int:
        """The number of the target word before which markup without words of its own goes."""
        here = mark.span[0]
        before = sum(after <= here for _, after in self.words.source) - 1
        behind = sum(first < here for first, _ in self.words.source)
        in_room = range(*room)
        places = [word for word in in_room if self.words.links[word] == behind][:1]
        ends = [word + 1 for word in in_room if self.words.links[word] == before][-1:]
        places = places + ends if mark.space_before else ends + places
        share = behind / max(1, len(self.words.source))
        place = places[0] if places else min(max(round(share * len(self.words.target)), room[0]), room[1])
        for first, after in taken:
            if first < place < after:
                return first if place - first <= after - place else after
        return place

    def _characters(self, place: Span, mark: Mark, within: Span) -> Span:
        words = self.words.target
        first, after = place
        if first < after:
            return words[first][0], words[after - 1][1]
        if first > 0 and (first == len(words) or not mark.space_before):
            here = words[first - 1][1]
        else:
            here = words[first][0] if words else 0
        here = min(max(here, within[0]), within[1])
        return here, here

    def _spaces(self, mark: Mark, here: int) -> tuple[str, str]:
        """What must be added around inserted markup so that it does not touch words that it did not touch before."""
        before, behind = self.text[:here][-1:], self.text[here:][:1]
        is_touched = mark.space_before and before.strip() and self.has_spaces
        touches = mark.space_after and behind.isalnum() and self.has_spaces
        return " " if is_touched else "", " " if touches else ""


def _without(gap: Span, taken: Span) -> list[Span]:
    """What is left of a gap on both sides of what has been taken from it."""
    if not gap[0] <= taken[0] <= taken[1] <= gap[1]:
        return [gap]
    return [(gap[0], taken[0]), (taken[1], gap[1])]
