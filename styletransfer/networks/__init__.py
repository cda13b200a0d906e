"""Style networks: feed-forward networks that paint a picture in one pass."""

from styletransfer.networks.deploy import deployed
from styletransfer.networks.johnson import LAYOUTS, Architecture, StyleNetwork

__all__ = ["LAYOUTS", "Architecture", "StyleNetwork", "deployed"]
