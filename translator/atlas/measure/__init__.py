"""Longer measurements, whose results are shipped as data: every module has `add_options` and `measure`."""
