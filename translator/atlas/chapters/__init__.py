"""The chapters of the atlas: every module turns the figures of one into HTML."""
