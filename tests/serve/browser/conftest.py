"""A server whose models copy or know a few sentences by heart."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from support.exported_runs import SMALL, make_run
from support.fake_models import ByteTokenizer, CopyModel
from support.page_visits import Visit
from support.servers import RunningServer, running
from translator import Translator
from translator.decoding.line_translator import LineTranslator
from translator.decoding.search import SearchOptions
from translator.ids import NUM_SPECIAL
from translator.languages import alignment_tokens
from translator.schema.model import TransformerConfig
from translator.serve.torch_model import TorchModel


class PlainTokenizer(ByteTokenizer):
    """Every byte is a piece; with a model that copies, a text stays as it is."""

    def decode_target(self, ids: Sequence[Sequence[int]]) -> list[str]:
        return [bytes(i - NUM_SPECIAL for i in row if i >= NUM_SPECIAL).decode("utf-8", "replace") for row in ids]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that knows six sentences by heart."""
    return make_run(tmp_path_factory.mktemp("run") / "run", TransformerConfig(**SMALL))


@pytest.fixture(scope="module")
def translator(run: Path) -> Translator:
    return Translator.load(run, "cpu")


@pytest.fixture(scope="module")
def site(run: Path) -> Iterator[RunningServer]:
    """English into German by a model that copies, and into "Hebrew" by one that knows a few German sentences."""
    tokenizer = PlainTokenizer()
    copies = LineTranslator(
        CopyModel(tokenizer.target_vocab_size),
        tokenizer,
        options=SearchOptions(beam_size=5),
        split_words=alignment_tokens,
    )
    with running([TorchModel(copies, "en", "de"), TorchModel(Translator.load(run, "cpu"), "en", "he")]) as started:
        yield started


@pytest.fixture
def visit(browser: Any, site: RunningServer) -> Iterator[Visit]:
    opened = Visit(browser, f"{site.url}/")
    yield opened
    opened.context.close()
    assert opened.complaints == []
