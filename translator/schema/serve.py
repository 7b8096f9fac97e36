"""Options of `translate-serve` itself: where it listens, and the limits on requests."""

from dataclasses import dataclass
from typing import ClassVar

from translator.schema.options import Options, option

LARGEST_TEXT = 10_000_000  # characters or bytes of one request
LONGEST_WAIT = 86_400  # seconds


@dataclass
class ServerOptions(Options):
    group: ClassVar[str] = "serve"

    host: str = option("127.0.0.1", "address to listen on; 0.0.0.0 = all addresses of this machine")
    port: int = option(8000, "port to listen on; 0 = any free port", minimum=0, maximum=65_535)
    api_keys: str = option("", "file with an API key on each line; without it, no key is needed", metavar="FILE")
    allow_origin: list[str] = option(
        [], "let web pages from this origin use the server (CORS); can be repeated; * = any origin", metavar="ORIGIN"
    )
    max_characters: int = option(10_000, "largest number of characters in a request", minimum=1, maximum=LARGEST_TEXT)
    max_texts: int = option(128, "largest number of texts in a request", minimum=1, maximum=100_000)
    max_alternatives: int = option(10, "largest number of alternative translations", minimum=0, maximum=1_000)
    max_beam: int = option(
        20,
        "largest beam size, and number of candidates for minimum Bayes risk, in a request",
        minimum=1,
        maximum=1_000,
    )
    max_body: int = option(1_000_000, "largest body of a request, in bytes", minimum=1_000, maximum=LARGEST_TEXT)
    max_queue: int = option(
        256, "largest number of waiting requests; further ones get status 429", minimum=1, maximum=1_000_000
    )
    timeout: float = option(
        60.0, "seconds after which a request is abandoned with status 503", above=0, maximum=LONGEST_WAIT, metavar="S"
    )
    batch_wait: float = option(
        5.0,
        "milliseconds that a request may wait to be batched with others, while several clients are active",
        minimum=0,
        maximum=1_000,
        metavar="MS",
    )
    drain: float = option(
        30.0, "seconds to finish accepted requests after SIGTERM or Ctrl-C", minimum=1, maximum=LONGEST_WAIT,
        metavar="S",
    )  # fmt: skip
