"""Distil VGG-19 into a small feature network: `python scripts/distill.py pictures=FOLDER`.

Interrupted, it goes on where it ended when the same command is given again. The result is used by
`python scripts/train.py features=bundled features.weights=outputs/distill/student.safetensors`.
"""

from pathlib import Path

from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, OmegaConf

from styletransfer.cli import register_schemas, script
from styletransfer.config import DistillConfig
from styletransfer.distillation.run import distill

register_schemas()


@script("distill")
def main(cfg: DictConfig) -> None:
    """Train, and say where the weights are."""
    config = OmegaConf.to_object(cfg)
    assert isinstance(config, DistillConfig)
    print(distill(config, Path(HydraConfig.get().runtime.output_dir)))


if __name__ == "__main__":
    main()
