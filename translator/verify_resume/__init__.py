"""The command that proves resuming right: `python -m translator.verify_resume --help`."""
