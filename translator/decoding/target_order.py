"""Models that write from right to left (data.reverse_target): the last piece first, and EOS after the first one.

Only the model itself and the search on top of it see that order. Everywhere else, from forbidden words to attention
maps, pieces are in the order in which they are read, EOS the last of them.
"""

from typing import NoReturn

from translator.decoding.forced_decoding import Forced
from translator.errors import OptionError


def written_at(length: int) -> list[int]:
    """The step at which such a model writes each of `length` pieces, EOS the last of them in both orders.

    It is also the place at which each step's piece is read: reversing twice changes nothing.
    """
    return [*range(length - 2, -1, -1), length - 1]


def as_read(forced: Forced) -> Forced:
    """What such a model says about a target, in the order in which the target is read."""
    order = written_at(len(forced.piece_scores))
    return Forced(
        forced.score,
        [forced.piece_scores[step] for step in order],
        None if forced.attention is None else forced.attention[order],
        None if forced.heads is None else forced.heads[:, :, order],
        None if forced.likeliest is None else [forced.likeliest[step] for step in order],
    )


def refuse(option: str, value: object) -> NoReturn:
    """Refuses what needs the beginning of a translation while its end is not known yet."""
    raise OptionError(
        option,
        value,
        "not with a run that was trained with data.reverse_target=true, which writes the end of a line first; leave it "
        "out, or use another run",
    )
