"""Fonts that can write what has to be written, Chinese as well as German."""

import functools
import sys

from matplotlib import font_manager

DEFAULT_FONT = "DejaVu Sans"  # comes with matplotlib
_warned: set[str] = set()  # characters somebody has been told of


@functools.lru_cache(maxsize=512)
def _characters_of(font_path: str) -> frozenset[int]:
    try:
        return frozenset(font_manager.get_font(font_path).get_charmap())
    except (OSError, RuntimeError):  # removed since matplotlib made its list, or damaged
        return frozenset()


@functools.lru_cache(maxsize=1)
def _add_new_fonts() -> None:
    """matplotlib looks for fonts once and remembers the list for ever; this adds those installed since then."""
    known = {entry.fname for entry in font_manager.fontManager.ttflist}
    for path in sorted(set(font_manager.findSystemFonts()) - known):
        try:
            font_manager.fontManager.addfont(path)
        except (OSError, RuntimeError, ValueError):  # damaged, or of a kind that FreeType does not draw
            continue


def fonts_for(text: str) -> tuple[list[str], set[str]]:
    """Names of installed fonts that together can write the text, and the characters that none of them has."""
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
    """Takes the font with most of the missing characters until no font has another; the rest is returned too."""
    # The font of last resort has a box for every character and none of the characters.
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
    """Tells once of characters that pictures cannot show."""
    missing = fonts_for(text)[1]
    if missing <= _warned:
        return
    if not _warned:
        print(
            f"Warning: no installed font has {''.join(sorted(missing)[:10])}, which the pictures of attention show as "
            f"boxes; install one, such as Noto Sans CJK (Debian: fonts-noto-cjk). {elsewhere}".rstrip(),
            file=sys.stderr,
        )
    _warned.update(missing)
