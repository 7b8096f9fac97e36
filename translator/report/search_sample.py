"""A part of the held-out set translated twice, with the run's own search and greedily, to compare the two."""

import time
from collections.abc import Sequence

from translator.decoding.hypotheses import length_penalty
from translator.decoding.interfaces import Translation
from translator.decoding.line_translator import LineTranslator
from translator.report.material import SearchSample
from translator.schema.decode import SearchOptions

NUM_SENTENCES = 200
GREEDY_BEAM = 5  # of the comparison where the run's own search is greedy, or samples


def search_sample(translator: LineTranslator, sources: Sequence[str]) -> SearchSample:
    """Translates sentences spread evenly over the set; both searches see the same ones, so their times compare."""
    step = max(1, -(-len(sources) // NUM_SENTENCES))
    indices = [index for index in range(0, len(sources), step) if sources[index].strip()]
    lines = [sources[index] for index in indices]
    own = translator.options
    beam_size = own.beam_size if own.beam_size > 1 and not own.sample else GREEDY_BEAM
    beam = own.changed(beam_size=beam_size, sample=False, num_hypotheses=1, mbr=0)
    found, seconds = [], []
    try:
        translator.options = beam
        translator.translate_fully(lines[:2])  # warm-up, which is not timed
        for options in (beam, beam.changed(beam_size=1)):
            translator.options = options
            started = time.perf_counter()
            found.append(translator.translate_fully(lines))
            seconds.append(time.perf_counter() - started)
    finally:
        translator.options = own
    whole = [n for n in range(len(indices)) if max(one[n].num_parts for one in found) == 1]
    return SearchSample(
        indices=[indices[n] for n in whole],
        beam_texts=[found[0][n].outputs[0].text for n in whole],
        greedy_texts=[found[1][n].outputs[0].text for n in whole],
        beam_scores=[_score(found[0][n], beam) for n in whole],
        greedy_scores=[_score(found[1][n], beam) for n in whole],
        beam_seconds=seconds[0],
        greedy_seconds=seconds[1],
        beam_size=beam_size,
        num_in_parts=len(indices) - len(whole),
    )


def _score(translation: Translation, options: SearchOptions) -> float:
    """What beam search would compare, whichever search found the translation; EOS counts as a piece."""
    output = translation.outputs[0]
    return output.score / length_penalty(float(output.num_pieces + 1), options)
