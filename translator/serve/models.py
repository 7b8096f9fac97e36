"""What the server needs from a model, and its models by language pair."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from translator.languages import language_subtag
from translator.schema.decode import SearchOptions
from translator.serve.refusals import Refusal


class WordLinks(NamedTuple):
    """For each word of a translation the number of the source word that the model looked at most."""

    source: list[str]
    target: list[str]
    links: list[int]


class Candidate(NamedTuple):
    text: str
    score: float  # log-probability, or the expected utility with minimum Bayes risk
    links: WordLinks | None = None  # on request, where the model can tell


@dataclass(frozen=True)
class Result:
    """The translations of a line."""

    candidates: list[Candidate]  # best first, at least one
    num_source_pieces: int = 0
    num_pieces: int = 0  # of the best translation
    details: dict[str, Any] | None = None  # of `translator.inspection`, on request

    def candidate(self, rank: int) -> Candidate:
        """The translation of this rank, or the last one if there are fewer."""
        return self.candidates[min(rank, len(self.candidates) - 1)]

    def text(self, rank: int = 0) -> str:
        return self.candidate(rank).text


@dataclass(frozen=True)
class Details:
    """What `translator.inspection` is asked to show besides probabilities and attention."""

    num_runners_up: int = 5
    heads: bool = False
    heads_rank: int = 0  # of the hypothesis whose heads are shown
    beam: bool = False


Prefix = str | tuple[str, ...]  # start of the translation of a line or, with details, of each of its segments


class Model(Protocol):
    """Translates lines from one language into another. All calls of `translate` come from one thread."""

    source: str
    target: str
    description: str
    options: SearchOptions
    joiner: str  # between the translations of sentences

    def check_options(self, options: SearchOptions) -> None:
        """Raises an OptionError if it cannot search with these."""
        ...

    def count_pieces(self, lines: Sequence[str]) -> list[int]: ...

    def split_sentences(self, line: str) -> list[str]: ...

    def translate(
        self,
        lines: Sequence[str],
        options: SearchOptions,
        *,
        prefixes: Sequence[Prefix] | None = None,
        split_sentences: bool = False,
        details: Details | None = None,
        need_links: bool = False,
        first_line: int = 0,
        interrupted: Callable[[], bool] = lambda: False,
    ) -> list[Result]: ...


class Catalogue:
    """The models by language. A code such as EN, en-US or en_GB finds a model for en if there is none of its own."""

    def __init__(self, models: Sequence[Model]) -> None:
        self.models = list(models)

    @property
    def sources(self) -> list[str]:
        return list(dict.fromkeys(model.source for model in self.models))

    @property
    def targets(self) -> list[str]:
        return list(dict.fromkeys(model.target for model in self.models))

    @property
    def languages(self) -> list[str]:
        return sorted({*self.sources, *self.targets})

    def targets_of(self, source: str) -> list[str]:
        return [model.target for model in self.models if model.source == source]

    def sources_of(self, target: str, name: str = "target") -> list[str]:
        """The languages that can be translated into this one; `name` is what the request calls it."""
        found = _find(target, self.targets)
        if found is None:
            raise Refusal(400, f"{name}: {target}: no model translates into it; {self._available()}")
        return [model.source for model in self.models if model.target == found]

    def find(self, source: str, target: str) -> Model:
        """The model for a pair of languages; a refusal lists the pairs that exist."""
        found = _find(source, self.sources), _find(target, self.targets)
        for model in self.models:
            if (model.source, model.target) == found:
                return model
        raise Refusal(400, f"no model translates from {source} into {target}; {self._available()}")

    def _available(self) -> str:
        pairs = ", ".join(f"{model.source} into {model.target}" for model in self.models)
        return f"this server translates {pairs}"


def _find(code: str, available: Sequence[str]) -> str | None:
    normalized = {_normalized(name): name for name in available}
    if _normalized(code) in normalized:
        return normalized[_normalized(code)]
    return next((name for name in available if language_subtag(name) == language_subtag(code)), None)


def _normalized(code: str) -> str:
    return code.replace("_", "-").lower()
