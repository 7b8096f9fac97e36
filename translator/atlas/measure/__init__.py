"""Measurements that take longer and are shipped as data: every module has `add_options` and `measure`."""
