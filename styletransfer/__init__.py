"""Neural style transfer by optimising an image under VGG features."""
