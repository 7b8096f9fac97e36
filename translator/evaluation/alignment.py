"""How good word alignments are: precision, recall and alignment error rate (Och and Ney 2003, section 6)."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import NamedTuple

from translator.errors import UserError

_PAIR = re.compile(r"(\d+)([-?p])(\d+)")


class GoldAlignment(NamedTuple):
    """Pairs (source word, target word). Every sure pair is also a possible one."""

    sure: frozenset[tuple[int, int]]
    possible: frozenset[tuple[int, int]]


@dataclass(frozen=True)
class AlignmentScores:
    error_rate: float  # 1 - (|A ∩ S| + |A ∩ P|) / (|A| + |S|)
    precision: float  # |A ∩ P| / |A|
    recall: float  # |A ∩ S| / |S|
    num_pairs: int  # |A|
    num_sure: int  # |S|

    def to_dict(self) -> dict[str, float | int]:
        return asdict(self)


def parse_pharaoh(line: str, name: str = "alignment", number: int = 1) -> GoldAlignment:
    """A line such as "0-0 1-2 2?1", where "?" (or "p") marks a pair that is possible but not sure."""
    sure, possible = set(), set()
    for token in line.split():
        match = _PAIR.fullmatch(token)
        if match is None:
            raise UserError(f"{name}, line {number}: {token} is not an alignment such as 0-1 (sure) or 0?1 (possible)")
        pair = int(match.group(1)), int(match.group(3))
        possible.add(pair)
        if match.group(2) == "-":
            sure.add(pair)
    return GoldAlignment(frozenset(sure), frozenset(possible))


def score_alignments(found: Sequence[Iterable[tuple[int, int]]], gold: Sequence[GoldAlignment]) -> AlignmentScores:
    """Counts over all sentences. Precision is 0 if no pairs were predicted; recall is 0 if there are no sure pairs."""
    if len(found) != len(gold):
        raise UserError(
            f"{len(found)} sentences were aligned and the truth has {len(gold)}: they must be the same ones"
        )
    num_pairs = num_sure = num_found_sure = num_found_possible = 0
    for pairs, truth in zip(found, gold, strict=True):
        chosen = set(pairs)
        num_pairs += len(chosen)
        num_sure += len(truth.sure)
        num_found_sure += len(chosen & truth.sure)
        num_found_possible += len(chosen & truth.possible)
    total = num_pairs + num_sure
    return AlignmentScores(
        error_rate=1 - (num_found_sure + num_found_possible) / total if total else 0.0,
        precision=num_found_possible / num_pairs if num_pairs else 0.0,
        recall=num_found_sure / num_sure if num_sure else 0.0,
        num_pairs=num_pairs,
        num_sure=num_sure,
    )
