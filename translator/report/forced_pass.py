"""One pass of the model over the references (teacher forcing), for calibration, attention and search errors.

B sentences, T target pieces, S source pieces, V vocabulary, N = positions that are no padding.
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from translator.decoding.line_translator import LineTranslator
from translator.decoding.target_order import written_at
from translator.ids import BOS, EOS, PAD
from translator.models.base import evaluation_mode
from translator.report.material import ForcedSentence

BATCH_TOKENS = 1_024  # target pieces; attention of all layers and heads is held for so many
LONGEST = 256  # pieces on a side; attention of the few longer sentences would fill the memory
PROJECTED_TOGETHER = 512  # positions whose logits are held at once


def force_references(
    translator: LineTranslator,
    sources: Sequence[str],
    references: Sequence[str],
    *,
    is_late: Callable[[], bool] = lambda: False,
) -> list[ForcedSentence]:
    """What the model says about every reference that is not blank or overlong, in the order of the sentences."""
    normalize = translator.normalize or (lambda text: text)
    source_rows = translator.encode_sources(sources)
    target_rows = translator.tokenizer.encode_target([normalize(text) for text in references])
    usable = [
        index
        for index, (source, target) in enumerate(zip(source_rows, target_rows, strict=True))
        if len(source) > len(translator.source_tags) + 1 and target and max(len(source), len(target) + 1) <= LONGEST
    ]
    results: dict[int, ForcedSentence] = {}
    with evaluation_mode(translator.model), torch.inference_mode():
        for batch in _batches(usable, [len(target) + 1 for target in target_rows]):
            if is_late():
                break
            pairs = [(source_rows[index], [*target_rows[index], EOS]) for index in batch]
            for index, sentence in zip(batch, _force(translator, batch, pairs), strict=True):
                results[index] = sentence
    return [results[index] for index in sorted(results)]


def _batches(indices: Sequence[int], lengths: Sequence[int]) -> Iterator[list[int]]:
    """Sentences of about the same length together."""
    batch: list[int] = []
    for index in sorted(indices, key=lambda index: lengths[index]):
        if batch and (len(batch) + 1) * lengths[index] > BATCH_TOKENS:
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch


def _force(
    translator: LineTranslator, indices: Sequence[int], pairs: Sequence[tuple[list[int], list[int]]]
) -> Iterator[ForcedSentence]:
    model, device = translator.model, translator.device
    source = _padded([source for source, _ in pairs]).to(device)  # (B, S)
    written = [translator.turned(target[:-1]) for _, target in pairs]
    target_in = _padded([[BOS, *pieces] for pieces in written]).to(device)  # (B, T)
    target_out = _padded([[*pieces, EOS] for pieces in written]).to(device)  # (B, T)
    decoded = model(source, source != PAD, target_in, need_weights=True)
    is_real = target_out != PAD
    log_probs, confidences, predictions = [], [], []
    states, wanted = decoded.states[is_real], target_out[is_real]  # (N, D), (N)
    for start in range(0, len(wanted), PROJECTED_TOGETHER):
        part = slice(start, start + PROJECTED_TOGETHER)
        logits = torch.log_softmax(model.project(states[part]).float(), dim=-1)  # (N, V)
        best, pieces = logits.max(-1)
        log_probs.append(logits.gather(1, wanted[part, None]).squeeze(1))
        confidences.append(best.exp())
        predictions.append(pieces)
    columns = [_split(torch.cat(parts), [len(target) for _, target in pairs]) for parts in (log_probs, confidences)]
    columns.append(_split(torch.cat(predictions), [len(target) for _, target in pairs]))
    for row, (index, (source_ids, target_ids)) in enumerate(zip(indices, pairs, strict=True)):
        order = written_at(len(target_ids)) if translator.reverse_target else slice(None)
        weights = None
        if decoded.attention is not None:
            weights = decoded.attention[row, :, :, : len(target_ids), : len(source_ids)].float().cpu().numpy()
            weights = weights.astype(np.float16)[:, :, order]  # a thousand sentences have many weights
        log_prob, confidence, prediction = (column[row][order] for column in columns)
        yield ForcedSentence(index, source_ids, target_ids, log_prob, confidence, prediction, weights)


def _padded(rows: Sequence[Sequence[int]]) -> Tensor:
    return pad_sequence([torch.tensor(row) for row in rows], batch_first=True, padding_value=PAD)


def _split(values: Tensor, lengths: Sequence[int]) -> list[np.ndarray]:
    return [part.numpy() for part in values.cpu().split(list(lengths))]
