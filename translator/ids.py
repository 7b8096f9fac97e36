"""The special token ids shared by all vocabularies; SentencePiece is trained with the same ids."""

PAD = 0  # pads the rows of a batch to equal length; never attended to, never predicted
UNK = 1  # never produced by a tokenizer with byte fallback, but required by SentencePiece
BOS = 2  # the first input of the decoder
EOS = 3  # the last token of every source and every target
NUM_SPECIAL = 4
NUM_BYTES = 256  # pieces added by byte fallback, one per byte
