"""Finished models in the formats of other libraries: CTranslate2, Hugging Face, ONNX."""
