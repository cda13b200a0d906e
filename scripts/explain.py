"""Explain where the gradient goes: `python scripts/explain.py loss_mode=fake_backward`.

Takes the same keys as `scripts/train.py`, watches one evaluation, prints its graph as a tree and
writes `explain.html`, a page that a browser opens offline. Try each `loss_mode=` in turn.
"""

from pathlib import Path

from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, OmegaConf
from rich.console import Console

from styletransfer.cli import register_schemas, script
from styletransfer.config import TrainConfig
from styletransfer.explain import explain

register_schemas()


@script("explain")
def main(cfg: DictConfig) -> None:
    """Watch one evaluation and say where the page is."""
    config = OmegaConf.to_object(cfg)
    assert isinstance(config, TrainConfig)
    explanation = explain(config, Path(HydraConfig.get().runtime.output_dir))
    console = Console()
    for tree in explanation.trees():
        console.print(tree)
    print(explanation.page)


if __name__ == "__main__":
    main()
