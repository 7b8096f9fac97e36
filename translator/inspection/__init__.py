"""What can be seen of the translation of a sentence, as plain values for pages and programs."""
