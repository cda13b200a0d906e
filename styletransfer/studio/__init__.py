"""`studio`: a local web page that paints pictures and changes settings while they are painted.

This package shows and steers what other packages paint.
"""
