"""What `translate --attention DIR` writes: images of attention, a page with all maps, and an interactive page."""

from pathlib import Path

from translator.decoding.interfaces import Translation
from translator.decoding.line_translator import LineTranslator
from translator.files.atomic import write_text
from translator.files.explain import explain_write_errors
from translator.inspection.inspect import inspect_line
from translator.plots.attention import AttentionPages
from translator.serve.offline_page import OfflinePage

NUM_BEST = 5  # translations of each line that the page shows, if the beam finds as many


class TranslationPages:
    def __init__(self, folder: Path, translator: LineTranslator, *, languages: tuple[str, str] = ("", "")) -> None:
        self.translator = translator
        self.path = folder / "index.html"
        self.maps = AttentionPages(folder)
        self.page = OfflinePage("Translations", languages=languages)
        options = translator.options
        # More samples or candidates would change the output; a longer list from the beam does not.
        is_beam = not options.sample and options.mbr == 0
        self.num_best = max(options.num_hypotheses, min(NUM_BEST, options.beam_size) if is_beam else 1)

    def add(self, number: int, line: str, prefix: str, translation: Translation) -> None:
        """Adds line `number`, counted from 0; the translation must have its attention."""
        maps = translation.outputs[0].attention or []
        plain = [(source, target, weights.numpy()) for source, target, weights in maps]
        self.maps.add(number + 1, translation.outputs[0].text, plain)
        if self.page.is_full:
            self.page.leave_out()
            return
        seen = inspect_line(
            self.translator,
            line,
            prefix=prefix,
            num_hypotheses=self.num_best,
            need_heads=True,
            need_beam=True,
            number=number,
        )
        self.page.add(number + 1, seen)

    @property
    def note(self) -> str:
        return self.page.note

    def close(self) -> None:
        self.maps.close()
        with explain_write_errors(self.path):
            write_text(self.path, self.page.to_html())
