"""The four ids that every vocabulary shares, set in SentencePiece itself, so that text and tensors never disagree."""

PAD = 0  # fills rows of a batch up to the same length; never attended to, never predicted
UNK = 1  # cannot come out of a tokenizer with byte fallback; kept because SentencePiece requires it
BOS = 2  # the first input of the decoder
EOS = 3  # the last piece of every source and every target
NUM_SPECIAL = 4
NUM_BYTES = 256  # pieces that byte fallback adds, one for each byte
