"""Chapter 4: multi-head attention."""

from collections import Counter
from typing import Any

from translator.atlas.chapters.parts import columns, look, made_by, missing, text, tiles
from translator.atlas.formulas import formula
from translator.report.charts import attention_maps, heat_map
from translator.report.curves import Curve, curve_chart
from translator.report.html import Markup, join, table, tag
from translator.report.sections.parts import Section

NAME = "heads"
STACKS = {
    "encoder": "self-attention of the encoder",
    "decoder": "self-attention of the decoder",
    "cross": "attention to the source",
}
SMALL_LOSS = 1.0  # BLEU
ABOUT = "Several small attentions side by side: what each of them looks at, and how much the translation needs it."
INTRODUCTION = (
    "One softmax can look at one kind of thing at a time. A Transformer therefore splits its vectors into several "
    "parts, lets each part attend on its own, and combines the results. Each part is called a head. Below is every "
    "head of a small trained Transformer: in the encoder, where the source looks at itself; in the decoder, where the "
    "target looks at what is already written; and between them, where the target looks at the source."
)


def write(figures: dict[str, Any]) -> Section:
    measurement = figures["heads"]
    introduction = join(
        text(INTRODUCTION),
        formula(
            r"\text{head}_i = \softmax(\frac{Q_i K_i^\top}{\sqrt{d}}) V_i, \quad "
            r"\MultiHead = \sum_{i} \text{head}_i W_i^O",
            "head i is the softmax of Q i times K i transposed over the root of d, times V i; multi-head attention is "
            "the sum over i of head i times W i O",
        ),
    )
    if measurement is None:
        note = missing(
            "This chapter needs a trained Transformer:", "python -m translator.atlas --run RUN -o atlas.html"
        )
        return _section(join(introduction, note))
    found = measurement["figures"]
    made = made_by(NAME, "heads", measurement if measurement["provenance"] else None)
    return _section(join(introduction, _maps(found), _roles(found), _removal(found), made))


def _section(content: Markup) -> Section:
    return Section(NAME, "4 Heads", "4 · Multi-head attention", ABOUT, content)


def _maps(found: dict[str, Any]) -> Markup:
    maps = [
        attention_maps(f"Every head: {name}", [_unpacked(one) for one in found["maps"][stack]])
        for stack, name in STACKS.items()
        if found["maps"][stack]
    ]
    if not maps:
        return text("No sentence of the sample is short enough to be drawn.")
    return join(
        tag("h3", "What the heads look at"),
        text(
            "Rows are the pieces that look, columns the pieces looked at; ▁ begins a word, </s> ends the sentence. The "
            "decoder is fed the reference translation. Choose a head to enlarge it."
        ),
        maps,
        look(
            "a dark diagonal is a head that looks at the piece itself, one beside it a head that looks at a neighbour; "
            "a dark column is a piece that all others look at. In the decoder the upper right half is empty, because "
            "the future is masked. Compare the attention to the source with the maps of chapter 3."
        ),
    )


def _unpacked(one: dict[str, Any]) -> dict[str, Any]:
    weights = [[[[int(n) / 100 for n in row.split()] for row in head] for head in layer] for layer in one["percent"]]
    return {**one, "weights": weights}


def _roles(found: dict[str, Any]) -> Markup:
    rules = found["rules"]
    return join(
        tag("h3", "Roles, defined by rules"),
        text(
            f"A head is given a role if at least {100 * rules['smallest_share']:.0f} % of its attention goes to one "
            "kind of place, on average over all pieces of the sample (not counting padding, nor </s> as a query): the ",
            tag("em", "previous"),
            ", ",
            tag("em", "same"),
            " or ",
            tag("em", "next"),
            " piece, the ",
            tag("em", "end"),
            " mark, the ",
            tag("em", "begin"),
            " mark (in the decoder, counted from the third step on) or, in attention to the source, the words of the "
            "gold ",
            tag("em", "alignment"),
            " (counted by words). If there are several such places, the largest share decides. A head without a role "
            "is ",
            tag("em", "diffuse"),
            f" if its entropy is at least {100 * rules['smallest_spread']:.0f} % of that of equal weights, and ",
            tag("em", "mixed"),
            " otherwise.",
        ),
        [_role_table(name, found["roles"][stack]) for stack, name in STACKS.items()],
        text(
            f"Measured on {found['num_sentences']} sentences of the {found['held_out']} set. "
            f"{_counted(found['roles'])} "
            + ("" if found["has_gold"] else "There is no gold alignment here, so no head could get that role. ")
            + "The thresholds are a choice: with others, some heads would have other roles. And a role says where a "
            "head looks, not what the model does with what it finds there."
        ),
    )


def _counted(roles: dict[str, list[list[dict[str, Any]]]]) -> str:
    """How many heads of each stack have each role."""
    parts = []
    for stack, name in STACKS.items():
        counts = Counter(one["role"] for layer in roles[stack] for one in layer).most_common()
        parts.append(f"{name}: " + ", ".join(f"{count} {role}" for role, count in counts))
    return "Heads: " + "; ".join(parts) + "."


def _role_table(name: str, layers: list[list[dict[str, Any]]]) -> Markup:
    headings = (name, *(f"head {number + 1}" for number in range(len(layers[0]))))
    rows = [(f"layer {number + 1}", *(_role(one) for one in layer)) for number, layer in enumerate(layers)]
    return table(headings, rows)


def _role(one: dict[str, Any]) -> Markup:
    """The name and its share; for heads without a role, how even their attention is."""
    share = one["shares"].get(one["role"])
    detail = f"{100 * share:.0f} %" if share is not None else f"spread {one['spread']:.2f}"
    return join(one["role"], " ", tag("span", detail, class_="small"))


def _removal(found: dict[str, Any]) -> Markup:
    removal = found["removal"]
    whole, singles, curve = removal["bleu"], removal["singles"], removal["curve"]
    worst = min(singles, key=lambda one: one["bleu"])
    harmless = sum(one["bleu"] >= whole - SMALL_LOSS for one in singles)
    together = max(number for number, bleu in curve if all(b >= whole - SMALL_LOSS for n, b in curve if n <= number))
    losses = sorted(whole - one["bleu"] for one in singles)
    added = [(number, max(0.0, whole - sum(losses[:number]))) for number, _ in curve]
    half, without_half = min(curve, key=lambda point: abs(point[0] - len(singles) / 2))
    return join(
        tag("h3", "Removing heads"),
        text(
            "The sum above makes it easy to remove a head: set its part W",
            tag("sub", "i"),
            tag("sup", "O"),
            " of the output projection to zero, translate again, and compare BLEU. Nothing is trained afterwards, so "
            "the rest of the model has no chance to make up for the loss.",
        ),
        tiles(
            [
                ("all heads", f"{whole:.1f}", f"BLEU, greedy search, {found['num_sentences']} sentences"),
                ("heads that cost at most 1 BLEU", f"{harmless} of {len(singles)}", "removed one at a time"),
                ("the costliest head", f"−{whole - worst['bleu']:.1f}", f"BLEU: {_head_name(worst)}"),
                ("can be removed together", f"{together} of {len(singles)}", "for at most 1 BLEU, cheapest first"),
            ]
        ),
        columns([_loss_map(name, stack, singles, whole) for stack, name in STACKS.items()]),
        curve_chart(
            "BLEU as more and more heads are removed",
            [Curve("measured", curve, mode="both"), Curve("if the single losses added up", added, dashed=True)],
            x="heads removed, those with the smallest single losses first",
            y="BLEU",
            digits=1,
        ),
        look(
            f"the single losses do not add up. The {half} cheapest heads lose {sum(losses[:half]):.1f} BLEU if their "
            f"single losses are added, but {whole - without_half:.1f} when they are removed together: the model can do "
            "without a head as long as another one can do its work."
        ),
        text(
            "This is one model on one small corpus, and a change of a few tenths of BLEU, up or down, may come from a "
            "single sentence; the table says how many translations changed. The order of removal is fixed by the "
            "single losses; a search for the best set of heads might keep more of the quality. The experiment follows "
            "Michel et al. 2019 and Voita et al. 2019, who removed many heads of larger models at little cost."
        ),
        _changed(singles),
    )


def _loss_map(name: str, stack: str, singles: list[dict[str, Any]], whole: float) -> Markup:
    own = [one for one in singles if one["stack"] == stack]
    layers, heads = max(one["layer"] for one in own) + 1, max(one["number"] for one in own) + 1
    values = [[0.0] * heads for _ in range(layers)]
    for one in own:
        values[one["layer"]][one["number"]] = round(whole - one["bleu"], 1) or 0.0  # not −0
    largest = max(whole - one["bleu"] for one in singles)
    return heat_map(
        f"BLEU lost: {name}",
        [f"layer {number + 1}" for number in range(layers)],
        [f"h{number + 1}" for number in range(heads)],
        values,
        digits=1,
        maximum=largest or 1.0,
    )


def _changed(singles: list[dict[str, Any]]) -> Markup:
    rows = [(_head_name(one), f"{one['bleu']:.2f}", one["num_changed"]) for one in singles]
    return tag(
        "details",
        tag("summary", "Show the numbers"),
        table(("head removed", "BLEU", "translations that changed"), rows),
    )


def _head_name(one: dict[str, Any]) -> str:
    return f"{STACKS[one['stack']]}, layer {one['layer'] + 1}, head {one['number'] + 1}"
