"""What a translation model loses with some of its attention heads.

A head is removed by zeroing the columns of the output projection that its result meets:
    MultiHead = Σ_i head_i W_i^O + b
so W_i^O = 0 leaves the sum of the other heads (Vaswani et al. 2017, section 3.2.2; removing heads:
Michel et al. 2019, arXiv:1905.10650, and Voita et al. 2019, arXiv:1905.09418).
"""

import copy
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import torch

from translator.atlas.figures.recorded_attention import STACKS, attention_modules
from translator.decoding.line_translator import LineTranslator
from translator.evaluation.metrics import score_corpus
from translator.models.transformer import Transformer
from translator.report.material import HeldOut


class Head(NamedTuple):
    stack: str
    layer: int
    number: int


def all_heads(model: Transformer) -> list[Head]:
    modules = attention_modules(model)
    return [
        Head(stack, layer, number)
        for stack in STACKS
        for layer, module in enumerate(modules[stack])
        for number in range(module.num_heads)
    ]


@torch.no_grad()
def without_heads(model: Transformer, heads: Iterable[Head]) -> Transformer:
    """A copy of the model in which these heads contribute nothing; the bias of the projection stays."""
    result = copy.deepcopy(model)
    modules = attention_modules(result)
    for stack, layer, number in heads:
        module = modules[stack][layer]
        columns = slice(number * module.head_size, (number + 1) * module.head_size)
        module.output_projection.weight[:, columns] = 0
    return result


def removal_figures(
    translator: LineTranslator, held_out: HeldOut, *, curve_points: int | None = None
) -> dict[str, Any]:
    """BLEU of greedy search without each head, and without more and more of them, in order of their single losses.

    The curve has all numbers of heads from 0, or at most `curve_points` of them, spread evenly.
    """
    model = translator.model
    assert isinstance(model, Transformer)
    heads = all_heads(model)

    def outcome(removed: Sequence[Head]) -> tuple[float, list[str]]:
        texts = _greedy(translator, without_heads(model, removed), held_out.sources)
        return score_corpus(texts, held_out.references, held_out.target_language, metrics=("bleu",))["bleu"], texts

    whole, texts = outcome([])
    found = [(head, *outcome([head])) for head in heads]
    order = [head for head, bleu, _ in sorted(found, key=lambda one: -one[1])]
    singles = [
        {**head._asdict(), "bleu": bleu, "num_changed": sum(a != b for a, b in zip(texts, other, strict=True))}
        for head, bleu, other in found
    ]
    numbers = curve_numbers(len(heads), curve_points)
    known = {0: whole, 1: singles[heads.index(order[0])]["bleu"]}
    curve = [(number, known[number] if number in known else outcome(order[:number])[0]) for number in numbers]
    return {"bleu": whole, "singles": singles, "order": [list(head) for head in order], "curve": curve}


def curve_numbers(num_heads: int, most: int | None) -> list[int]:
    """How many heads are removed at each point of the curve, from none to all."""
    if most is None or most > num_heads:
        return list(range(num_heads + 1))
    return sorted({round(number * num_heads / (most - 1)) for number in range(most)})


def _greedy(translator: LineTranslator, model: Transformer, sources: Sequence[str]) -> list[str]:
    searcher = LineTranslator(
        model,
        translator.tokenizer,
        translator.device,
        translator.options.changed(beam_size=1, num_hypotheses=1, sample=False, mbr=0),
        max_pieces=translator.max_pieces,
        normalize=translator.normalize,
        joiner=translator.joiner,
    )
    return searcher.translate(sources)
