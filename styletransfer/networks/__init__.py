"""Style networks: feed-forward networks that paint a picture in one pass; their training.

A network is trained once, and then paints each picture in one pass. A picture that is optimised
itself, as by `train`, needs none of this.
"""
