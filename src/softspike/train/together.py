"""Why coders cannot be trained together."""

__all__ = ["NotTogether"]


class NotTogether(TypeError):
    """These coders or this recipe cannot go through one program; says why."""
