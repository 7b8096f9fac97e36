"""How the translation of a sentence came about, as plain values for pages and programs."""
