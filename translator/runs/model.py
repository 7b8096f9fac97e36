"""A run's model, from its configuration."""

from translator.config import ModelConfig
from translator.data.tokenizer import Tokenizer
from translator.errors import UserError
from translator.models.base import Seq2Seq
from translator.models.embeddings import Embeddings
from translator.models.lstm import LstmSeq2Seq
from translator.models.transformer import Transformer

_CLASSES: dict[str, type[Seq2Seq]] = {"lstm": LstmSeq2Seq, "transformer": Transformer}
_NOT_OF_THE_MODEL = ("kind", "teacher_forcing")  # options of the group `model` that decide how it is trained


def spare_tags(model: Seq2Seq, tokenizer: Tokenizer) -> None:
    """Word dropout and cutoff never remove the tags in front of the source."""
    ids = list(tokenizer.tag_ids.values())
    for module in model.modules():
        if isinstance(module, Embeddings) and ids:
            module.spared = range(min(ids), max(ids) + 1)


def build_model(config: ModelConfig, source_vocab_size: int, target_vocab_size: int) -> Seq2Seq:
    """A new model; the options of a model's group are the arguments of its class."""
    options = {name: value for name, value in vars(config).items() if name not in _NOT_OF_THE_MODEL}
    try:
        return _CLASSES[config.kind](source_vocab_size, target_vocab_size, **options)
    except ValueError as error:
        raise UserError(f"model: {error}") from error
