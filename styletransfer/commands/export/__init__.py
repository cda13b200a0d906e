"""`export`: a style network as an ONNX file, which needs none of our code."""
