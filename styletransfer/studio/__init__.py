"""`studio`: a local web page that paints pictures and changes settings while they are painted.

It shows and steers what other rooms paint; the code that paints is in those rooms.
"""
