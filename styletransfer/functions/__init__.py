"""torch.autograd.Function subclasses: forward and backward written out, and checked."""

from styletransfer.functions.content_tap import ContentTap, content_tap
from styletransfer.functions.gram import gram_matrix
from styletransfer.functions.style_tap import StyleTap, style_tap

__all__ = ["ContentTap", "StyleTap", "content_tap", "gram_matrix", "style_tap"]
