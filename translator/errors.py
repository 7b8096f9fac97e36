"""The one exception that a command shows to its user as a plain sentence."""


class UserError(Exception):
    """Something the user can put right: the message names the option or file, its value and the remedy.

    Commands print the message without a traceback and end with a non-zero exit code; every other exception is a defect
    of ours and keeps its traceback.
    """
