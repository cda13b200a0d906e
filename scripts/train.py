"""Stylise one picture after another: `python scripts/train.py content=A.jpg style=B.jpg`.

Without arguments it stylises the bundled pictures. Every key is explained in
`styletransfer/config.py`; `--help` shows the composed config, and `dry_run=true` prints what
would be done, with estimated memory and time, and writes nothing.
"""

from pathlib import Path

from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, OmegaConf

from styletransfer.cli import register_schemas, script
from styletransfer.config import TrainConfig
from styletransfer.errors import UserError
from styletransfer.job import prepare
from styletransfer.plan import plan
from styletransfer.train import train

register_schemas()


@script("train")
def main(cfg: DictConfig) -> None:
    """Run one style transfer and say where the picture is."""
    config = OmegaConf.to_object(cfg)
    assert isinstance(config, TrainConfig)
    if config.dry_run:
        print(plan(prepare(config)))
        return
    outcome = train(config, Path(HydraConfig.get().runtime.output_dir))
    result = outcome.result
    losses = "  ".join(f"{name} {value:.4g}" for name, value in result.losses.items())
    if losses:
        print(losses)
    early = result.interrupted or result.problem is not None
    how = "stopped early after" if early else "done in"
    print(
        f"{how} {outcome.seconds:.1f} s, {result.steps} steps, "
        f"{outcome.device}, {outcome.precision}"
    )
    print(outcome.picture)
    if result.problem is not None:
        raise UserError(result.problem)


if __name__ == "__main__":
    main()
