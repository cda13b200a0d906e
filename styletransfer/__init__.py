"""Neural style transfer by optimising an image under VGG features."""

__version__ = "0.2.0"
