"""The one exception that a person is meant to read."""


class UserError(Exception):
    """Bad input: the message is one line that says what is wrong and what to do about it.

    Scripts print it without a traceback and exit with status 1.
    """
