"""Installed fonts that cover the characters to be drawn, Chinese as well as German."""

import functools
import sys

from matplotlib import font_manager

DEFAULT_FONT = "DejaVu Sans"  # comes with matplotlib
_warned: set[str] = set()  # characters already warned about


@functools.lru_cache(maxsize=512)
def _characters_of(font_path: str) -> frozenset[int]:
    try:
        return frozenset(font_manager.get_font(font_path).get_charmap())
    except (OSError, RuntimeError):  # removed since matplotlib listed it, or damaged
        return frozenset()


@functools.lru_cache(maxsize=1)
def _add_new_fonts() -> None:
    """Adds the fonts installed since matplotlib built its list, which it caches and never updates."""
    known = {entry.fname for entry in font_manager.fontManager.ttflist}
    for path in sorted(set(font_manager.findSystemFonts()) - known):
        try:
            font_manager.fontManager.addfont(path)
        except (OSError, RuntimeError, ValueError):  # damaged, or in a format that FreeType does not support
            continue


def fonts_for(text: str) -> tuple[list[str], set[str]]:
    """Names of installed fonts that together cover the text, and the characters that none of them has."""
    covered = _characters_of(font_manager.findfont(DEFAULT_FONT))
    missing = {character for character in text if ord(character) not in covered and character.isprintable()}
    if not missing:
        return [DEFAULT_FONT], missing
    families, missing = _cover(missing)
    if missing:
        _add_new_fonts()
        more, missing = _cover(missing)
        families += more
    return [DEFAULT_FONT, *families], missing


def _cover(missing: set[str]) -> tuple[list[str], set[str]]:
    """Greedily adds the font with the most missing characters; also returns those that no font has."""
    # The Last Resort font has a box for every character and no real glyphs.
    installed = {(entry.name, entry.fname) for entry in font_manager.fontManager.ttflist}
    fonts = sorted((name, path) for name, path in installed if not name.startswith("Last Resort"))
    families: list[str] = []
    while missing:
        gains = [(name, {c for c in missing if ord(c) in _characters_of(path)}) for name, path in fonts]
        best, gained = max(gains, key=lambda gain: len(gain[1]), default=("", set[str]()))
        if not gained:
            break
        families.append(best)
        missing = missing - gained
    return families, missing


def warn_of_missing(text: str, elsewhere: str = "") -> None:
    """Warns once about characters that the images cannot show."""
    missing = fonts_for(text)[1]
    if missing <= _warned:
        return
    if not _warned:
        print(
            f"Warning: no installed font has {''.join(sorted(missing)[:10])}, so attention maps show boxes instead; "
            f"install one, such as Noto Sans CJK (Debian: fonts-noto-cjk). {elsewhere}".rstrip(),
            file=sys.stderr,
        )
    _warned.update(missing)
