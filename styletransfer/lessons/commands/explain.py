"""The command `explain`: a summary of one evaluation, and a page with the graph of each mode."""

from dataclasses import replace
from pathlib import Path

from styletransfer.settings import StyleTransferConfig
from styletransfer.settings.registry import command


@command()
def explain(config: StyleTransferConfig, folder: Path) -> None:
    """Explain where the gradient goes."""
    from styletransfer.job.prepare import prepare
    from styletransfer.lessons.explain.drawing import Map, render, summary
    from styletransfer.lessons.explain.study import study
    from styletransfer.losses import LOSS_MODES
    from styletransfer.objective.whole import Objective
    from styletransfer.pictures.images import resize
    from styletransfer.runs.claim import claimed
    from styletransfer.settings.idle import warn_if_typed
    from styletransfer.system.files import write_atomic

    job = prepare(replace(config, output=None))
    pictures = job.full_size()
    height, width = pictures.content.shape[2:]
    image = resize(job.on_device(job.start.picture(pictures)), (height, width))
    # The config's own loss mode comes first.
    modes = sorted(LOSS_MODES.values(), key=lambda mode: mode is not job.mode)
    compared = job.criterion, pictures
    studies = [study(Objective(job.extractor, mode, *compared), image) for mode in modes]
    where = f"{job.precision}, {job.device.type}"
    setting = f"{config.features.name}, {width} x {height} pixels, {where}"
    files = {f"map_{seen.mode}.svg": Map(seen).draw(alone=True) for seen in studies}
    files["explain.html"] = render("page.html", studies=studies, setting=setting)
    with claimed(folder, files):
        # Warn after the folder is locked, so that no other run's folder gets the log.
        warn_if_typed(
            "in explain, which paints nothing", "output", "steps", "scales", "tile", "optimizer"
        )
        for name, text in files.items():
            write_atomic(folder / name, text.encode())
    print(f"{studies[0].mode}: {setting}", *summary(studies[0]), folder / "explain.html", sep="\n")
