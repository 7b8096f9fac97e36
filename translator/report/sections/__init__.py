"""The sections of the report as HTML, made from its figures."""
