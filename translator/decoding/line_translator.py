"""Text in, text out: a model, its tokenizer and the options of the search as one object."""

from collections.abc import Callable, Sequence
from functools import cache, partial
from itertools import islice
from typing import Any

import torch
from torch import Tensor

from translator.decoding.alignment import SplitWords
from translator.decoding.ensemble import Ensemble
from translator.decoding.forbidden_words import Spellings, forbidden_sequences
from translator.decoding.forced_decoding import Forced, score_targets
from translator.decoding.interfaces import BLANK, AttentionMap, SearchEngine, TextTokenizer, Translation
from translator.decoding.length_batches import batches_by_length
from translator.decoding.memory import SearchMemory
from translator.decoding.minimum_risk import PairwiseUtility, least_risk_first
from translator.decoding.parts import Part, divide, join, join_alignments
from translator.decoding.rerank import Reranker
from translator.decoding.search import Hypothesis, SearchOptions, search
from translator.decoding.target_order import as_read, refuse
from translator.decoding.term_requirements import Terminology
from translator.decoding.term_search import term_search
from translator.decoding.workers import for_each, num_workers
from translator.errors import Interrupted
from translator.ids import EOS, PAD
from translator.models.base import Seq2Seq, evaluation_mode


class LineTranslator:
    """Translates lines of text; the translation of a line does not depend on the lines around it.

    `normalize` is applied to each line first. A line with more than `max_pieces` pieces is translated in parts, whose
    translations are joined by `joiner` (the empty string for languages without spaces); 0 means that the model takes
    lines of any length. Alignments are between the words that `split_words` finds. `interrupted` is polled at every
    step of a search; once it returns True, `Interrupted` is raised. `make_utility` gives the utility
    that `options.mbr_utility` names, for minimum Bayes risk. An `engine` searches in place of torch where it can. A
    `reranker` has the last word on all hypotheses that a search finds, except with minimum Bayes risk. Every source
    begins with the ids `source_tags`, and no translation contains a piece of `never`. `reverse_target` says that the
    model writes from right to left; what goes in and comes out here is in reading order all the same.
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
        reranker: Reranker | None = None,
        source_tags: Sequence[int] = (),
        never: Sequence[int] = (),
        reverse_target: bool = False,
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
        self.reranker = reranker
        self.source_tags = list(source_tags)
        self.never = tuple(never)
        self.reverse_target = reverse_target
        self._forget_words()

    def translate(self, lines: Sequence[str], *, advance: Callable[[int], None] = lambda count: None) -> list[str]:
        """The best translation of every line, in the order of the lines; a blank line stays blank.

        `advance` is called with the number of further lines done, from whichever thread did them.
        """
        translations = self.translate_fully(lines, need_scores=False, advance=advance)
        return [translation.outputs[0].text for translation in translations]

    def translate_fully(
        self,
        lines: Sequence[str],
        *,
        prefixes: Sequence[str] | None = None,
        need_scores: bool = True,
        need_alignment: bool = False,
        need_attention: bool = False,
        first_line: int = 0,
        advance: Callable[[int], None] = lambda count: None,
    ) -> list[Translation]:
        """Every line's n-best list with scores and, if asked for, alignments and attention.

        Each translation begins with its line's prefix. Without `need_scores` the scores may be NaN. `first_line` is the
        number of the first of these lines in the whole text: samples depend on a line's number, but not on how the
        text is divided into calls.
        """
        parts = self.parts(lines, prefixes, first_line)
        self.find_hypotheses(
            parts, need_scores=need_scores, need_attention=need_alignment or need_attention, advance=advance
        )
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
        need_scores: bool = True,
        need_attention: bool = False,
        advance: Callable[[int], None] = lambda count: None,
    ) -> None:
        """Gives every part its hypotheses and, if asked for, what the model attended to in each of them."""
        with evaluation_mode(self.model):
            # Batches translated side by side share the budget, so that memory does not grow with the threads.
            budget = self.options.batch_tokens // num_workers(self.device)
            reranker = None if self.options.mbr else self.reranker
            need_scores = need_scores or reranker is not None
            options, rank = self.options.for_candidates(all_of_beam=reranker is not None), self._ranking()
            memory = SearchMemory(self.model, self.tokenizer.target_vocab_size, options, self.device)
            most_sentences = cache(memory.most_sentences)
            most = [most_sentences(len(part.ids), len(part.prefix), part.terms.size) for part in parts]
            num_together = min([num_workers(self.device), *most])
            most = [sentences // num_together for sentences in most]
            indices = batches_by_length([len(part.ids) for part in parts], budget, most, num_together)
            batches = [[parts[index] for index in batch] for batch in indices]
            forbidden = self.forbidden()
            if self.engine is not None and self.engine.accepts(options):
                self._ask(self.engine, batches, options, need_scores, num_together)

            def work(batch: list[Part], abandoned: Callable[[], bool]) -> None:
                for has_terms in (False, True):
                    remaining = [part for part in batch if not part.hypotheses and bool(part.terms.size) == has_terms]
                    if remaining:
                        self._search(remaining, options, forbidden, abandoned)
                for part in batch:
                    part.hypotheses = rank(self._in_reading_order(part.hypotheses))
                if reranker is not None:
                    self._rerank(reranker, batch)
                self._spell(batch)
                if need_attention:
                    self._attend(batch)
                advance(sum(part.is_first for part in batch))

            for_each(work, batches, self.device, at_most=num_together)

    def score(self, sources: Sequence[str], targets: Sequence[str], *, need_attention: bool = False) -> list[Forced]:
        """The log-probability of each piece of given translations, and attention on request."""
        source_ids = self.encode_sources(sources)
        target_ids = self.tokenizer.encode_target([self._normalized(text) for text in targets])
        results: list[Forced | None] = [None] * len(source_ids)
        lengths = [max(len(s), len(t) + 1) for s, t in zip(source_ids, target_ids, strict=True)]
        with evaluation_mode(self.model):
            for batch in batches_by_length(lengths, self.options.batch_tokens):
                source, mask = self.tensors([source_ids[index] for index in batch])
                chosen = [target_ids[index] for index in batch]
                scored = self.force(source, mask, chosen, need_attention=need_attention)
                for index, result in zip(batch, scored, strict=True):
                    results[index] = result
        return [result for result in results if result is not None]

    def force(self, source: Tensor, mask: Tensor, targets: Sequence[Sequence[int]], **wanted: Any) -> list[Forced]:
        """What the model says about targets: `score_targets`, in reading order."""
        forced = score_targets(self.model, source, mask, [self.turned(ids) for ids in targets], **wanted)
        return [as_read(one) for one in forced] if self.reverse_target else forced

    def turned(self, ids: Sequence[int]) -> list[int]:
        """Pieces from reading order to the order in which the model writes them, or back; without BOS and EOS."""
        return list(ids)[::-1] if self.reverse_target else list(ids)

    def _in_reading_order(self, hypotheses: list[Hypothesis]) -> list[Hypothesis]:
        if not self.reverse_target:
            return hypotheses
        return [one._replace(ids=self.turned(one.ids)) for one in hypotheses]

    def align(self, sources: Sequence[str], targets: Sequence[str]) -> list[list[tuple[int, int]]]:
        """Word alignments (source word, target word) of given translations, from the model's attention."""
        alignments = []
        forced = self.score(sources, targets, need_attention=True)
        for source, target, result in zip(sources, targets, forced, strict=True):
            (source_ids,) = self.encode_sources([source])
            (target_ids,) = self.tokenizer.encode_target([self._normalized(target)])
            assert result.attention is not None
            pieces = self.tokenizer.source_pieces(source_ids), self.tokenizer.target_pieces([*target_ids, EOS])
            alignments.append(
                join_alignments([AttentionMap(*pieces, result.attention)], self.split_words, len(self.source_tags))
            )
        return alignments

    def encode_sources(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids that the model is given: tags, pieces of the normalised text, EOS."""
        encoded = self.tokenizer.encode_source([self._normalized(text) for text in texts])
        return [[*self.source_tags, *ids] for ids in encoded]

    def _forget_words(self) -> None:
        """What is known of them depends on the target language."""
        self._spelled: tuple[list[str], Spellings] = ([], ())  # the latest forbidden words, and how they are spelled
        self._terminology: Terminology | None = None  # of the latest options

    def forbidden(self) -> Spellings:
        """The spellings of the forbidden words as the model would write them; computed again when the words change."""
        if self.options.forbid != self._spelled[0]:
            spelled = forbidden_sequences(self.options.forbid, self.tokenizer, without_spaces=not self.joiner)
            self._spelled = list(self.options.forbid), tuple(tuple(self.turned(ids)) for ids in spelled)
        return self._spelled[1]

    def _require_terms(self, parts: Sequence[Part]) -> None:
        """Finds out which terms the translations must contain; the file is read when it is first named."""
        if self.reverse_target:
            refuse("terms", self.options.terms)
        if self._terminology is None or self._terminology.path != self.options.terms:
            self._terminology = Terminology(self.options.terms, self.tokenizer, self.normalize, self.joiner, self.never)
        for part in parts:
            part.terms = self._terminology.requirements(part.text, len(part.ids) - 1, part.prefix, self.options)

    def _normalized(self, text: str) -> str:
        return self.normalize(text) if self.normalize else text

    def parts(self, lines: Sequence[str], prefixes: Sequence[str] | None, first_line: int) -> list[Part]:
        forced = self.encode_prefixes(prefixes) if prefixes else None
        parts = divide(
            [self._normalized(line).strip() for line in lines],
            self.tokenizer,
            tags=self.source_tags,
            prefixes=forced,
            max_pieces=self.max_pieces,
            at_sentences=self.split_sentences,
            first_line=first_line,
        )
        if self.options.terms:
            self._require_terms(parts)
        return parts

    def encode_prefixes(self, prefixes: Sequence[str]) -> list[list[int]]:
        encoded = self.tokenizer.encode_target([self._normalized(prefix) for prefix in prefixes])
        if self.reverse_target and any(encoded):
            refuse("prefix", next(prefix for prefix, ids in zip(prefixes, encoded, strict=True) if ids))
        return encoded

    def tensors(self, ids: list[list[int]]) -> tuple[Tensor, Tensor]:
        source = torch.nn.utils.rnn.pad_sequence(
            [torch.tensor(row) for row in ids], batch_first=True, padding_value=PAD
        )
        source = source.to(self.device)
        return source, source != PAD  # (B, S)

    def _ranking(self) -> Callable[[list[Hypothesis]], list[Hypothesis]]:
        """How the hypotheses of a search are ranked: with minimum Bayes risk, by expected utility."""
        if self.options.mbr == 0:
            return lambda hypotheses: hypotheses
        if self.make_utility is None:
            raise ValueError("minimum Bayes risk needs make_utility")
        utility, num_best = self.make_utility(self.options.mbr_utility), self.options.num_hypotheses

        def rank(hypotheses: list[Hypothesis]) -> list[Hypothesis]:
            texts = self.tokenizer.decode_target([hypothesis.ids for hypothesis in hypotheses])
            return least_risk_first(hypotheses, texts, utility, num_best)

        return rank

    def _rerank(self, reranker: Reranker, parts: Sequence[Part]) -> None:
        found = [(part.text, hypothesis) for part in parts for hypothesis in part.hypotheses]
        sources, hypotheses = zip(*found, strict=True)
        texts = self.tokenizer.decode_target([hypothesis.ids for hypothesis in hypotheses])
        features = reranker.features(sources, texts, hypotheses)
        start = 0
        for part in parts:
            own = features[start : start + len(part.hypotheses)]
            start += len(part.hypotheses)
            part.hypotheses = reranker.best_first(part.hypotheses, own)[: self.options.num_hypotheses]

    def _ask(
        self,
        engine: SearchEngine,
        batches: Sequence[Sequence[Part]],
        options: SearchOptions,
        need_scores: bool,
        num_together: int,
    ) -> None:
        """Lets the engine search; what it leaves to us has no hypotheses afterwards."""
        asked = [[part for part in batch if not part.prefix] for batch in batches]
        found = engine.find(
            [[part.ids for part in batch] for batch in asked],
            options,
            need_scores=need_scores,
            at_most=num_together,
            before_batch=self._stop_if_interrupted,
        )
        for batch, hypotheses_of_batch in zip(asked, found, strict=True):
            for part, hypotheses in zip(batch, hypotheses_of_batch, strict=True):
                part.hypotheses = hypotheses or []
        for part in (part for batch in batches for part in batch):
            part.left_by_engine = not part.hypotheses

    def _stop_if_interrupted(self, abandoned: Callable[[], bool]) -> None:
        if abandoned() or self.interrupted():
            raise Interrupted

    def _search(
        self, parts: list[Part], options: SearchOptions, forbidden: Spellings, abandoned: Callable[[], bool]
    ) -> None:
        source, mask = self.tensors([part.ids for part in parts])
        prefixes = [part.prefix for part in parts] if any(part.prefix for part in parts) else None
        before_step = partial(self._stop_if_interrupted, abandoned)
        required = [part.terms.required for part in parts if part.terms.required is not None]
        if required:  # of all parts or of none
            found = term_search(
                self.model,
                source,
                mask,
                options,
                required,
                prefixes=prefixes,
                forbidden=forbidden,
                never=self.never,
                before_step=before_step,
            )
        else:
            found = search(
                self.model,
                source,
                mask,
                options,
                prefixes=prefixes,
                forbidden=forbidden,
                never=self.never,
                seeds=[part.seed for part in parts],
                before_step=before_step,
            )
        for part, hypotheses in zip(parts, found, strict=True):
            part.hypotheses = hypotheses

    def _spell(self, parts: Sequence[Part]) -> None:
        """Turns ids into text, all together: for one at a time SentencePiece takes twice as long."""
        texts = iter(self.tokenizer.decode_target([one.ids for part in parts for one in part.hypotheses]))
        for part in parts:
            part.texts = list(islice(texts, len(part.hypotheses)))

    def _attend(self, parts: list[Part]) -> None:
        """Feeds finished outputs to the model once more, so that the search need not keep track of attention."""
        source, mask = self.tensors([part.ids for part in parts])
        for rank in range(max(len(part.hypotheses) for part in parts)):
            targets = [part.hypothesis(rank).ids for part in parts]
            scored = self.force(source, mask, targets, need_attention=True)
            for part, forced in zip(parts, scored, strict=True):
                part.forced.append(forced)

    def assemble(self, parts: list[Part], need_alignment: bool, need_attention: bool) -> Translation:
        return join(
            parts,
            self.tokenizer,
            joiner=self.joiner,
            num_tags=len(self.source_tags),
            sum_scores=not self.options.mbr,  # log-probabilities are summed; expected utilities are not
            split_words=self.split_words if need_alignment else None,
            need_attention=need_attention,
        )
