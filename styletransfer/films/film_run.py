"""Paint a film by optimisation: `scripts/film.py content=FILM style=PAINTING output=PAINTED_FILM`.

Each frame starts from the previous painted frame, warped by the motion, so that strokes follow
objects (Ruder et al. 2016). After an interruption, run the same command again to continue. The
command needs the extra [video].
"""

import json
import logging
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from torch import Tensor

from styletransfer.errors import UserError
from styletransfer.films.commands.film import FilmConfig
from styletransfer.films.copier import FrameCopier
from styletransfer.films.flicker import FrameOptimizer
from styletransfer.films.frame import Frame
from styletransfer.films.keys import numbers_of, with_keys, write_frame
from styletransfer.films.motion import check_flow
from styletransfer.films.read import Film, FrameCallback
from styletransfer.films.write import FilmWriter, check_writable, film_files
from styletransfer.job.prepare import prepare
from styletransfer.pictures import images
from styletransfer.runs.claim import claimed
from styletransfer.runs.folder import LARGEST
from styletransfer.runs.recipe import recipe, text_of
from styletransfer.runs.resume import check_recipe
from styletransfer.settings.idle import warn_if_typed
from styletransfer.system.files import write_atomic
from styletransfer.system.locks import output_locked, remove_stale
from styletransfer.system.outputs import check_outputs
from styletransfer.system.signals import Stop, signals_held, stop_on_signals

logger = logging.getLogger(__name__)

# Names in a run's folder: of the file with the recipe (all settings, and the input files' hashes),
# of the folder of painted frames, and of the painted film.
RECORD, FRAMES, PAINTED = "film.json", "frames", "painted.mp4"
# Keys of the settings that may be changed when a film is resumed.
FREE_FILM_KEYS = ("output", "device", "recipe")


def paint_film(config: FilmConfig, folder: Path) -> None:
    """Paint a film, or continue after the frames in `folder`; print the path of the painted film.

    If a signal (such as Ctrl-C) or a damaged frame ends the painting early, the painted frames
    become a partial film. If no frame is painted in the folder `keys`, the film's middle frame is
    written instead, to be painted.
    """
    with stop_on_signals() as stop, Film(config.content, config.fps) as film:
        config, keys = with_keys(config, film), config.keys
        if keys is not None and not config.style:
            print(path := write_frame(film, film.count // 2, folder))
            logger.info("%s holds no painting: paint %s, and save it there", keys, path.name)
            return
        run = FilmRun(config, film, folder)
        claim = claimed(folder, run.written, goes_on=(folder / RECORD).exists())
        # Signals wait, so that Ctrl-C leaves no half-written frame or file.
        with signals_held(), claim, output_locked(run.output):
            run.check_record()
            remove_stale(run.path(0).parent)
            run.write(*run.paint(stop), stop)
            run.tell_next()
    print(run.output)


class FilmRun:
    """A FilmRun paints a film: each frame as a PNG file below `folder`, then the file of the film.

    The constructor checks all settings (UserError if a setting would make the film fail).
    """

    painter: FrameOptimizer | FrameCopier  # set by `paint`

    def __init__(self, config: FilmConfig, film: Film, folder: Path) -> None:
        self.config, self.film, self.folder = config, film, folder
        self.output = Path(config.output) if config.output else folder / PAINTED
        # Whether CUDA graphs were used: by earlier runs of this film, then for each frame.
        self.captured: list[bool] = []
        self.written = (RECORD, FRAMES, *(() if config.output else (PAINTED,)))
        if not film.path.is_dir():
            warn_if_typed("where content is no folder of frames", "fps")
        if config.style_source is not None:
            copied = "with style_source, from whose paintings pixels are copied"
            warn_if_typed(copied, "steps", "scales", "init", "loss_mode", "objective", "optimizer")
        if config.content_regions == "auto":
            problem = "content_regions=auto is for one picture; give a film a label picture"
            raise UserError(problem, "content_regions")
        frames, outputs = folder / FRAMES, [*film_files(self.output), folder / RECORD]
        check_flow(images.scaled_size(film.size, config.size))
        first = images.Picture(next(film.frames()).image, name=config.content)
        check_writable(self.output, images.scaled_size(film.size, config.size))
        self.job = prepare(replace(config, output=None), {"content": first}, search=False)
        check_outputs([*outputs, self.path(0)], self.job.files, [frames])

    def path(self, number: int) -> Path:
        """Return the path of the PNG of painted frame `number`, counted from 0."""
        return self.folder / FRAMES / f"{number:06d}.png"

    def check_record(self) -> None:
        """Raise UserError if RECORD holds another recipe; otherwise, write this run's recipe."""
        path = self.folder / RECORD
        job, free = self.job, FREE_FILM_KEYS
        config = replace(self.config, captured=job.captured)
        now = self.recipe = recipe(config, free, job.files, job.device, precision=job.precision)
        if path.exists():
            try:
                # The file may come from somebody else, so a very large one is not read.
                if path.stat().st_size > LARGEST + 2 * len(json.dumps(now, indent=2)):
                    raise ValueError(RECORD)
                then = json.loads(path.read_text(encoding="utf-8"))
            except (OSError, ValueError, RecursionError):
                then = {}
            check_recipe(then, now, free)
            self.captured = [then["config"]["captured"] is True]
        self._write_record()

    def _write_record(self) -> None:
        text = json.dumps(self.recipe, indent=2) + "\n"
        write_atomic(self.folder / RECORD, text.encode())

    def paint(
        self, stop: Stop, callback: FrameCallback | None = None
    ) -> tuple[int, UserError | None]:
        """Paint the missing frames; return the number of painted frames, and an error or None.

        A signal ends the painting without an error. The error says why the next frame could not be
        painted, for example because it is damaged. If no frame was painted, the error is raised.
        `callback` is called after each frame; if it returns False, the painting ends.
        """
        config = self.config
        frames = partial(self.film.images, self.job.scales[-1].size)
        # FrameCopier calls `film()` to search frames for keys. Independent frames use no keys, and
        # `tuple()` holds no frame to search.
        film = tuple if config.independent else frames
        self.painter = painter = (
            FrameCopier(self.job, self.folder / FRAMES, film, numbers_of(config, self.film))
            if self.job.pictures.sources
            else FrameOptimizer(self.job, config.frame_steps, config.temporal_weight)
        )
        count = 0
        bar, problem = self.film.bar(frames()), None
        try:
            for number, content in enumerate(bar):
                path = self.path(number)
                if not path.exists():
                    outcome = painter.paint(content)
                    if outcome.problem is not None:
                        raise UserError(f"frame {number + 1}: {outcome.problem}")
                    images.write(path, outcome.image, bit_depth=16)
                    self.captured.append(outcome.captured)
                # Read the painted frame from its file, so that a resumed film has the same bits.
                painted = self._painted_frame(number)
                if not config.independent:
                    painter.follow(content, painted)
                count = number + 1
                if callback and not callback(self.film.count, content, painted):
                    break
        except KeyboardInterrupt:
            pass  # after Ctrl-C, the frames painted so far become a film
        except UserError as error:
            if count == 0:
                raise
            problem = error
        bar.close()
        self.recipe["config"]["captured"] = any(self.captured)
        self._write_record()
        if stop.asked is not None:
            logger.warning("stopped; run the same command to go on after frame %d", count)
        return count, problem

    def write(self, count: int, problem: UserError | None, stop: Stop) -> None:
        """Write a film of the first `count` frames.

        After a signal or a `problem`, the film's name is NAME.styletransfer-partial.EXTENSION, and
        Stopped or the problem is raised.
        """
        text = text_of("film", self.recipe) if self.config.recipe else ""
        with FilmWriter(self.output, self.film, text) as writer:
            for frame in self._painted(count):
                writer.write(*frame)
            if (reason := stop.asked or problem) is not None:
                raise reason

    def tell_next(self) -> None:
        """If pixels are copied from paintings, write the frame to paint next, and log its path."""
        if isinstance(self.painter, FrameCopier) and (worst := self.painter.worst()) is not None:
            path = write_frame(self.film, worst, self.folder)
            levels = 255 * self.painter.apart[worst]
            why = "it differs by %.1f grey levels from the photographs of the pixels copied there"
            logger.info(f"to paint next: %s, frame %d; {why}", path, worst, levels)

    def _painted_frame(self, number: int) -> Tensor:
        """Return painted frame `number` (UserError if it is damaged or has another size)."""
        path, (height, width) = self.path(number), self.job.scales[-1].size
        frame = images.read(path)
        if frame.size != (height, width):
            raise UserError(f"{path} is not {width} x {height} pixels, as this film; remove it")
        return frame.rgb

    def _painted(self, count: int) -> Iterator[Frame]:
        """Yield the first `count` painted frames, recoloured as the setting `color` asks."""
        for number, frame in zip(range(count), self.film.frames(), strict=False):
            pictures = replace(self.job.pictures, content=frame.image, start=None)
            finish = self.job.colors.after(pictures)
            yield frame._replace(image=finish(self._painted_frame(number)))
