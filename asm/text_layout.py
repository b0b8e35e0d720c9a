"""Where things stand in a line of assembly text, however it is made."""

INDENT = "  "
COMMENT_COLUMN = 42  # characters before a comment at the end of a line, and a space


def with_comment(code: str, comment: str) -> str:
    """A line of code and a comment behind it, which stands at one column wherever the code is short enough."""
    return f"{code:<{COMMENT_COLUMN}} {comment}"
