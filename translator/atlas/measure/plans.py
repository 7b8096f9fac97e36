"""Which small runs each measurement needs. With `quick` they are too short to learn anything, for trying things out."""

from collections.abc import Sequence

from translator.atlas.measure.small_runs import SmallRun

POSITIONS = ("sinusoidal", "learned", "rotary", "relative", "none")
SCORES = ("scaled_dot", "dot", "additive", "cosine", "gaussian")
SEEDS = (1,)  # of the runs about lengths
LENGTH_UPDATES = 1_200
TRAINED_PIECES = 14  # the longest side of a training pair in the runs about lengths
WARMUPS = (100, 0)  # updates; limited to a quarter of all updates
ALL_LENGTHS = "sinusoidal, trained on all lengths"
_SHALLOW = ("model.encoder_layers=2", "model.decoder_layers=2", "optim.warmup_updates=100")
_CURVES = ("trainer.batch_tokens=512", "trainer.log_every=10")
_DEEP = ("model.encoder_layers=8", "model.decoder_layers=8")


def length_runs(seeds: Sequence[int] = SEEDS, quick: bool = False) -> dict[tuple[str, int], SmallRun]:
    """One for each scheme of positions and seed, trained on short sentences, and one that has seen all lengths."""
    result = {}
    for seed in seeds:
        shared = (*_SHALLOW, "trainer.batch_tokens=256", *_validated_at_the_end(LENGTH_UPDATES, quick), f"seed={seed}")
        for scheme in POSITIONS:
            options = (f"model.positions={scheme}", f"data.max_pieces={TRAINED_PIECES}", *shared)
            result[scheme, seed] = SmallRun(f"length-{scheme}-{seed}", options)
        result[ALL_LENGTHS, seed] = SmallRun(f"length-all-{seed}", ("model.positions=sinusoidal", *shared))
    return result


def score_runs(quick: bool = False) -> dict[str, SmallRun]:
    """One for each score, with heads of 64 dimensions, the size of the Transformer's paper."""
    shared = ("model.num_heads=1", *_SHALLOW, *_CURVES, *_validated_at_the_end(300, quick))
    return {score: SmallRun(f"score-{score}", (f"model.score={score}", *shared)) for score in SCORES}


def norm_runs(quick: bool = False) -> dict[tuple[str, int], SmallRun]:
    """Both orders of normalisation in a deep and narrow model, with and without warm-up."""
    shared = (*_DEEP, *_CURVES, *_validated_at_the_end(300, quick))
    return {
        (order, warmup): SmallRun(
            f"norm-{order}-{warmup}", (f"model.norm_order={order}", f"optim.warmup_updates={warmup}", *shared)
        )
        for order in ("pre", "post")
        for warmup in WARMUPS
    }


def _validated_at_the_end(num_updates: int, quick: bool) -> tuple[str, str]:
    """Only then, so that the final weights are the last ones and not those with the best validation."""
    updates = 10 if quick else num_updates
    return f"trainer.max_updates={updates}", f"trainer.validate_every={updates}"
