"""Text from files and folders, safe to show: what would move the cursor or turn the line round is written out."""

__all__ = ["visible"]


def visible(text: str) -> str:
    r"""The text, with everything that is not a printable character as its escape.

    >>> visible("red\x1b[31m\r\u202e")
    'red\\x1b[31m\\r\\u202e'
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)
