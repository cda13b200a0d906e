"""Run one job under every loss mode: `python scripts/compare.py content=A.jpg style=B.jpg`.

The keys are those of `scripts/train.py`; `rounds=` and `points=` say how much is measured. Without
arguments it takes the bundled pictures. Gradients, calls, time, memory and pictures of each mode
land in the run folder as comparison.json, comparison.md and comparison.png.
"""

from pathlib import Path

from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, OmegaConf

from styletransfer.cli import register_schemas, script
from styletransfer.compare import compare
from styletransfer.comparison.report import sentences, table
from styletransfer.config import CompareConfig

register_schemas()


@script("compare")
def main(cfg: DictConfig) -> None:
    """Compare the loss modes; print the table and where the files are."""
    config = OmegaConf.to_object(cfg)
    assert isinstance(config, CompareConfig)
    folder = Path(HydraConfig.get().runtime.output_dir)
    comparison = compare(config, folder)
    print(table(comparison))
    print(f"time, memory and final loss are ratios to {comparison.reference}'s")
    print(sentences(comparison)[-1])
    for name in ("comparison.json", "comparison.md", "comparison.png"):
        print(folder / name)


if __name__ == "__main__":
    main()
