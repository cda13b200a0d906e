"""Style networks to be judged: which knows which style, and the pairs that follow."""

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from styletransfer.config import JudgeConfig, PairConfig, each
from styletransfer.errors import UserError
from styletransfer.job.sources import files_of
from styletransfer.networks import StyleNetwork, deployed
from styletransfer.networks.file import network_file, read


@dataclass(frozen=True)
class Trained:
    """One style of a network.

    Attributes:
        network: ready to paint, on the device.
        blend: (1, S), this style alone.
    """

    network: StyleNetwork
    blend: Tensor


def read_networks(
    config: JudgeConfig, device: torch.device, dtype: torch.dtype
) -> dict[str, Trained]:
    """Return style's name -> the network that knows it; nothing where none is to be judged.

    They paint as `apply` has them do it, their convolutions in `dtype`.

    Raises:
        UserError: a network cannot be read, two know one style, or there are pairs as well.
    """
    files = each(config.networks)
    if not any((files, each(config.contents), each(config.styles))):
        return {}
    if not files:
        raise UserError("networks names no file; name one that train_network has written")
    if config.pairs:
        raise UserError("networks are judged on contents and styles, not on pairs; judged=networks")
    found: dict[str, Trained] = {}
    for file in files:
        saved = read(network_file(file))
        network = deployed(saved.network, dtype).to(device)
        for number, name in enumerate(saved.styles):
            if name in found:
                raise UserError(f"networks: {file} is the second that knows the style {name}")
            blend = one_hot(torch.tensor([number], device=device), len(saved.styles))
            found[name] = Trained(network, blend.float())
    return found


def pairs_of(config: JudgeConfig, trained: dict[str, Trained]) -> list[PairConfig]:
    """Return each content with each style that a network knows.

    Raises:
        UserError: there is no content, or no picture of a style.
    """
    contents = files_of("contents", config.contents)
    styles = [file for file in files_of("styles", config.styles) if Path(file).stem in trained]
    for name in trained.keys() - {Path(file).stem for file in styles}:
        raise UserError(
            f"styles holds no picture called {name}, which a network was trained on; add it"
        )
    return [PairConfig(content, style) for content in contents for style in styles]
