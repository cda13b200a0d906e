"""Write a style network for other programs: an ONNX file, or a page that paints in a browser."""
