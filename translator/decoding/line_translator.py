"""Text in, text out: a model, its tokenizer and the options of the search as one object."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

import torch
from torch import Tensor

from translator.data.normalization import is_blank
from translator.decoding.alignment import SplitWords, align_words
from translator.decoding.ensemble import Ensemble
from translator.decoding.forbidden_words import Spellings, forbidden_sequences
from translator.decoding.forced_decoding import Forced, score_targets
from translator.decoding.interfaces import BLANK, AttentionMap, Output, SearchEngine, TextTokenizer, Translation
from translator.decoding.memory import SearchMemory
from translator.decoding.minimum_risk import PairwiseUtility, least_risk_first
from translator.decoding.search import Hypothesis, SearchOptions, search
from translator.decoding.segments import stretches
from translator.decoding.workers import for_each, num_workers
from translator.errors import Interrupted
from translator.ids import EOS, PAD
from translator.models.base import Seq2Seq, evaluation_mode

SHORTEST = 8  # pieces that a sentence counts for at least, so that batches of one-word lines stay small


@dataclass
class Part:
    """A stretch of a line that the model translates at once."""

    line: int
    ids: list[int]
    seed: int
    prefix: list[int]
    is_first: bool  # of its line
    left_by_engine: bool = False
    hypotheses: list[Hypothesis] = field(default_factory=list)
    forced: list[Forced] = field(default_factory=list)


class LineTranslator:
    """Translates lines of text; the translation of a line does not depend on the lines around it.

    `normalize` is applied to each line first. A line with more than `max_pieces` pieces is translated in parts, whose
    translations are joined by `joiner` (the empty string for languages without spaces); 0 means that the model takes
    lines of any length. Alignments are between the words that `split_words` finds. `interrupted` is polled at every
    step of a search; where it says so, the translation is given up with `Interrupted`. `make_utility` gives the utility
    that `options.mbr_utility` names, for minimum Bayes risk. An `engine` searches in place of torch where it can.
    """

    def __init__(
        self,
        models: Seq2Seq | Sequence[Seq2Seq],
        tokenizer: TextTokenizer,
        device: torch.device | str = "cpu",
        options: SearchOptions | None = None,
        *,
        max_pieces: int = 0,
        normalize: Callable[[str], str] | None = None,
        joiner: str = " ",
        split_sentences: bool = False,
        split_words: SplitWords = str.split,
        interrupted: Callable[[], bool] = lambda: False,
        make_utility: Callable[[str], PairwiseUtility] | None = None,
        engine: SearchEngine | None = None,
    ) -> None:
        members = [models] if isinstance(models, Seq2Seq) else list(models)
        self.model = members[0] if len(members) == 1 else Ensemble(members)
        self.tokenizer = tokenizer
        self.device = torch.device(device)
        self.options = options or SearchOptions()
        self.max_pieces = max_pieces
        self.normalize = normalize
        self.joiner = joiner
        self.split_sentences = split_sentences
        self.split_words = split_words
        self.interrupted = interrupted
        self.make_utility = make_utility
        self.engine = engine
        self._spelled: tuple[list[str], Spellings] = ([], ())  # the latest forbidden words, and how they are spelled

    def translate(self, lines: Sequence[str], *, advance: Callable[[int], None] = lambda count: None) -> list[str]:
        """The best translation of every line, in the order of the lines; a blank line stays blank.

        `advance` is told how many more lines are done, whenever there are some, from whichever thread did them.
        """
        return [translation.outputs[0].text for translation in self.translate_fully(lines, advance=advance)]

    def translate_fully(
        self,
        lines: Sequence[str],
        *,
        prefixes: Sequence[str] | None = None,
        need_alignment: bool = False,
        need_attention: bool = False,
        first_line: int = 0,
        advance: Callable[[int], None] = lambda count: None,
    ) -> list[Translation]:
        """Every line's n-best list with scores and, if asked for, alignments and attention.

        Each translation begins with its line's prefix. `first_line` is the number of the first of these lines in the
        whole text: samples depend on a line's number, but not on how the text is divided into calls.
        """
        parts = self.parts(lines, prefixes, first_line)
        self.find_hypotheses(parts, need_attention=need_alignment or need_attention, advance=advance)
        by_line: dict[int, list[Part]] = {}
        for part in parts:
            by_line.setdefault(part.line, []).append(part)
        return [
            self.assemble(by_line[line], need_alignment, need_attention) if line in by_line else BLANK
            for line in range(len(lines))
        ]

    def find_hypotheses(
        self,
        parts: Sequence[Part],
        *,
        need_attention: bool = False,
        advance: Callable[[int], None] = lambda count: None,
    ) -> None:
        """Gives every part its hypotheses and, if asked for, what the model attended to in each of them."""
        with evaluation_mode(self.model):
            # Batches translated side by side share the budget, so that memory does not grow with the threads.
            budget = self.options.batch_tokens // num_workers(self.device)
            options, rank = self.options.for_candidates(), self._ranking()
            memory = SearchMemory(self.model, self.tokenizer.target_vocab_size, options, self.device)
            most = [memory.most_sentences(len(part.ids), len(part.prefix)) for part in parts]
            num_together = min([num_workers(self.device), *most])
            most = [sentences // num_together for sentences in most]
            indices = self._batches([len(part.ids) for part in parts], budget, most)
            batches = [[parts[index] for index in batch] for batch in indices]
            engine = self.engine if self.engine is not None and self.engine.accepts(options) else None
            forbidden = self.forbidden()

            def work(batch: list[Part], abandoned: Callable[[], bool]) -> None:
                if engine is not None:
                    self._ask(engine, batch, options, abandoned)
                remaining = [part for part in batch if not part.hypotheses]
                if remaining:
                    self._search(remaining, options, forbidden, abandoned)
                for part in batch:
                    part.hypotheses = rank(part.hypotheses)
                if need_attention:
                    self._attend(batch)
                advance(sum(part.is_first for part in batch))

            for_each(work, batches, self.device, at_most=num_together)

    def score(self, sources: Sequence[str], targets: Sequence[str], *, need_attention: bool = False) -> list[Forced]:
        """The log-probability of each piece of given translations, and attention on request."""
        source_ids = self.tokenizer.encode_source([self._normalized(text) for text in sources])
        target_ids = self.tokenizer.encode_target([self._normalized(text) for text in targets])
        results: list[Forced | None] = [None] * len(source_ids)
        lengths = [max(len(s), len(t) + 1) for s, t in zip(source_ids, target_ids, strict=True)]
        with evaluation_mode(self.model):
            for batch in self._batches(lengths, self.options.batch_tokens):
                source, mask = self.tensors([source_ids[index] for index in batch])
                chosen = [target_ids[index] for index in batch]
                scored = score_targets(self.model, source, mask, chosen, need_attention=need_attention)
                for index, result in zip(batch, scored, strict=True):
                    results[index] = result
        return [result for result in results if result is not None]

    def align(self, sources: Sequence[str], targets: Sequence[str]) -> list[list[tuple[int, int]]]:
        """Word alignments (source word, target word) of given translations, from the model's attention."""
        alignments = []
        forced = self.score(sources, targets, need_attention=True)
        for source, target, result in zip(sources, targets, forced, strict=True):
            (source_ids,) = self.tokenizer.encode_source([self._normalized(source)])
            (target_ids,) = self.tokenizer.encode_target([self._normalized(target)])
            assert result.attention is not None
            pieces = self.tokenizer.source_pieces(source_ids), self.tokenizer.target_pieces([*target_ids, EOS])
            alignments.append(_join_alignments([AttentionMap(*pieces, result.attention)], self.split_words))
        return alignments

    def forbidden(self) -> Spellings:
        """The spellings of the words that must not be written; found anew when the words change."""
        if self.options.forbid != self._spelled[0]:
            spelled = forbidden_sequences(self.options.forbid, self.tokenizer, without_spaces=not self.joiner)
            self._spelled = list(self.options.forbid), spelled
        return self._spelled[1]

    def _normalized(self, text: str) -> str:
        return self.normalize(text) if self.normalize else text

    def parts(self, lines: Sequence[str], prefixes: Sequence[str] | None, first_line: int) -> list[Part]:
        texts = [self._normalized(line).strip() for line in lines]
        filled = [index for index, text in enumerate(texts) if not is_blank(text)]
        encoded = dict(zip(filled, self.tokenizer.encode_source([texts[index] for index in filled]), strict=True))
        forced: list[list[int]] = [[] for _ in lines]
        if prefixes:
            forced = self.tokenizer.encode_target([self._normalized(prefix) for prefix in prefixes])
        parts: list[Part] = []
        for line in filled:
            pieces = [encoded[line]]
            if self.split_sentences or 0 < self.max_pieces < _num_pieces(encoded[line]):
                cut = stretches(texts[line], self.max_pieces, self._count_pieces, by_sentence=self.split_sentences)
                pieces = self.tokenizer.encode_source(cut)
            # Text may have no pieces at all, if the vocabulary knows none of its characters.
            pieces = [ids for ids in pieces if any(piece != EOS for piece in ids)]
            for number, ids in enumerate(pieces):
                seed = (first_line + line) * 1_000_003 + number
                parts.append(Part(line, ids, seed, forced[line] if number == 0 else [], is_first=number == 0))
        return parts

    def _count_pieces(self, texts: Sequence[str]) -> list[int]:
        return [_num_pieces(ids) for ids in self.tokenizer.encode_source(list(texts))]

    def _batches(self, lengths: list[int], budget: int, most: Sequence[int] | None = None) -> Iterator[list[int]]:
        """Indices of sentences of about the same length, the longest first, under the budget of tokens.

        `most` says of each sentence how many like it fit into memory.
        """
        batch: list[int] = []
        longest = 0
        for index in sorted(range(len(lengths)), key=lambda index: -lengths[index]):
            longest = max(longest, lengths[index], SHORTEST)
            is_full = most is not None and len(batch) >= min(most[index], most[batch[0]] if batch else 1)
            if batch and (is_full or (len(batch) + 1) * longest > budget):
                yield batch
                batch, longest = [], max(lengths[index], SHORTEST)
            batch.append(index)
        if batch:
            yield batch

    def tensors(self, ids: list[list[int]]) -> tuple[Tensor, Tensor]:
        source = torch.nn.utils.rnn.pad_sequence(
            [torch.tensor(row) for row in ids], batch_first=True, padding_value=PAD
        )
        source = source.to(self.device)
        return source, source != PAD  # (B, S)

    def _ranking(self) -> Callable[[list[Hypothesis]], list[Hypothesis]]:
        """What is made of the hypotheses of a search: with minimum Bayes risk, the best by expected utility."""
        if self.options.mbr == 0:
            return lambda hypotheses: hypotheses
        if self.make_utility is None:
            raise ValueError("minimum Bayes risk needs make_utility")
        utility, num_best = self.make_utility(self.options.mbr_utility), self.options.num_hypotheses

        def rank(hypotheses: list[Hypothesis]) -> list[Hypothesis]:
            texts = self.tokenizer.decode_target([hypothesis.ids for hypothesis in hypotheses])
            return least_risk_first(hypotheses, texts, utility, num_best)

        return rank

    def _ask(
        self, engine: SearchEngine, parts: list[Part], options: SearchOptions, abandoned: Callable[[], bool]
    ) -> None:
        """Lets the engine search; what it leaves to us has no hypotheses afterwards."""
        self._stop_if_interrupted(abandoned)
        asked = [part for part in parts if not part.prefix]
        found = engine.find([part.ids for part in asked], options) if asked else []
        for part, hypotheses in zip(asked, found, strict=True):
            part.hypotheses = hypotheses or []
        for part in parts:
            part.left_by_engine = not part.hypotheses

    def _stop_if_interrupted(self, abandoned: Callable[[], bool]) -> None:
        if abandoned() or self.interrupted():
            raise Interrupted

    def _search(
        self, parts: list[Part], options: SearchOptions, forbidden: Spellings, abandoned: Callable[[], bool]
    ) -> None:
        source, mask = self.tensors([part.ids for part in parts])
        prefixes = [part.prefix for part in parts] if any(part.prefix for part in parts) else None
        found = search(
            self.model,
            source,
            mask,
            options,
            prefixes=prefixes,
            forbidden=forbidden,
            seeds=[part.seed for part in parts],
            before_step=partial(self._stop_if_interrupted, abandoned),
        )
        for part, hypotheses in zip(parts, found, strict=True):
            part.hypotheses = hypotheses

    def _attend(self, parts: list[Part]) -> None:
        """Feeds finished outputs to the model once more, so that the search need not keep track of attention."""
        source, mask = self.tensors([part.ids for part in parts])
        for place in range(max(len(part.hypotheses) for part in parts)):
            targets = [part.hypotheses[min(place, len(part.hypotheses) - 1)].ids for part in parts]
            scored = score_targets(self.model, source, mask, targets, need_attention=True)
            for part, forced in zip(parts, scored, strict=True):
                part.forced.append(forced)

    def assemble(self, parts: list[Part], need_alignment: bool, need_attention: bool) -> Translation:
        """The translations of a line from those of its parts: the best of each part form the best, and so on."""
        outputs = []
        for rank in range(max(len(part.hypotheses) for part in parts)):
            chosen = [part.hypotheses[min(rank, len(part.hypotheses) - 1)] for part in parts]
            texts = self.tokenizer.decode_target([hypothesis.ids for hypothesis in chosen])
            maps = [self._attention_map(part, rank) for part in parts] if need_alignment or need_attention else None
            mean = sum(hypothesis.normalized_score for hypothesis in chosen) / len(chosen)
            outputs.append(
                Output(
                    text=self.joiner.join(text for text in texts if text),
                    # Log-probabilities are summed; expected utilities are not.
                    score=mean if self.options.mbr else sum(hypothesis.score for hypothesis in chosen),
                    normalized_score=mean,
                    num_pieces=sum(len(hypothesis.ids) for hypothesis in chosen),
                    alignment=_join_alignments(maps, self.split_words) if need_alignment and maps else None,
                    attention=maps if need_attention else None,
                )
            )
        left_by_engine = any(part.left_by_engine for part in parts)
        return Translation(outputs, sum(len(part.ids) for part in parts), len(parts), left_by_engine)

    def _attention_map(self, part: Part, rank: int) -> AttentionMap:
        ids = part.hypotheses[min(rank, len(part.hypotheses) - 1)].ids
        weights = part.forced[rank].attention
        assert weights is not None
        return AttentionMap(self.tokenizer.source_pieces(part.ids), self.tokenizer.target_pieces([*ids, EOS]), weights)


def _join_alignments(maps: Sequence[AttentionMap], split_words: SplitWords) -> list[tuple[int, int]]:
    """The alignment of a line from those of its parts; words are numbered through all of them."""
    joined: list[tuple[int, int]] = []
    source_offset = target_offset = 0
    for source_pieces, target_pieces, weights in maps:
        pairs, num_source, num_target = align_words(
            source_pieces[:-1], target_pieces[:-1], weights[:-1, :-1], split_words
        )
        joined += [(source + source_offset, target + target_offset) for source, target in pairs]
        source_offset, target_offset = source_offset + num_source, target_offset + num_target
    return sorted(joined)


def _num_pieces(source_ids: Sequence[int]) -> int:
    """Without EOS, as the limit on training text counts them."""
    return len(source_ids) - 1
