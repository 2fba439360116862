"""The command line: dlcourse lab, doctor, train, watch, admit, bench."""

import argparse
import difflib
import functools
import json
import math
import os
import subprocess
import sys
import threading
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NoReturn

from dlcourse import __version__

OPTIMIZERS = ("SGD", "Momentum", "Nesterov", "AdaGrad", "AdaDelta", "RMSprop", "Adam", "AdamW", "Adam8bit", "Adafactor")
NETWORKS = ("mlp", "small_cnn", "cifar_cnn")
DATA = ("digits", "shapes", "cifar10", "mnist")


def main(arguments: list[str] | None = None) -> int:
    """Run one command; returns the exit code: 0, 1 where it failed, 2 where it was called wrongly, 141 where whoever
    read its output went away (`dlcourse doctor | head -1`), as a shell reports it of other programs."""
    for name in (
        "stdout",
        "stderr",
    ):  # None where the shell closed it (2>&-); and a file opened later would take its place
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115  it stays open to the end
        with suppress(AttributeError):  # a sign that a terminal's encoding lacks, such as a multiplication sign, is "?"
            getattr(sys, name).reconfigure(errors="replace")
    try:
        try:
            return _called(arguments)
        finally:
            sys.stdout.flush()  # here and not at the interpreter's end, where nothing can be caught
    except BrokenPipeError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for stream in (sys.stdout, sys.stderr):  # what is left in their buffers is written at the end
            os.dup2(nowhere, stream.fileno())
        return 141


def _called(arguments: list[str] | None) -> int:
    options = _parser().parse_args(arguments)
    try:
        return options.run(options)
    except KeyboardInterrupt:
        print(f"dlcourse: stopped{_way_on(getattr(options, 'checkpoint', None))}", file=sys.stderr)
        return 130
    except BrokenPipeError:
        raise
    except ModuleNotFoundError as error:
        from dlcourse.doctor import INSTALL

        print(f"dlcourse: error: the package {error.name} is missing; {INSTALL}", file=sys.stderr)
        return 2 if options.run is admit else 1  # of admit, 1 means refused
    except (ValueError, TypeError, OSError, ArithmeticError, MemoryError) as error:
        print(f"dlcourse: error: {error or type(error).__name__}", file=sys.stderr)
        return 1


def _way_on(folder: str | None) -> str:
    if folder is None:
        return ""
    if not Path(folder, "latest.safetensors").exists():
        return f" before the first checkpoint: nothing is in {folder}; --checkpoint-every STEPS writes one sooner"
    return f"; the last checkpoint in {folder} stands: the same command with --resume goes on from it"


def lab(options: argparse.Namespace) -> int:
    """Open JupyterLab at the first notebook, on loopback, asking nobody for news or updates."""
    project = Path(__file__).resolve().parent.parent
    notebook = Path("notebooks", "00_start_here.ipynb")
    if not (project / notebook).exists():
        raise FileNotFoundError(f"{notebook} is not beside the package: run this in a clone of the project")
    if find_spec("jupyterlab") is None:
        raise ModuleNotFoundError("No module named 'jupyterlab'", name="jupyterlab")
    command = [sys.executable, "-m", "jupyterlab", "--ServerApp.ip=127.0.0.1", f"--ServerApp.root_dir={project}"]
    command.append(f"--LabApp.default_url=/lab/tree/{notebook.as_posix()}")  # opened, and in the printed address
    command += ["--LabApp.news_url=None", "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate"]
    command.append(f"--LabApp.app_settings_dir={project / 'scripts' / 'lab_settings'}")  # no question about news either
    command.append("--Application.log_level=ERROR")  # the address stands at the end, and not above twenty other lines
    command.append("--ServerApp.answer_yes=True")  # Ctrl-C stops it, without a question
    command.append("--KernelManager.transport_encryption=auto")  # without it each kernel prints a warning
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        command.append("--allow-root")  # in a container
    if options.no_browser:
        command.append("--no-browser")
    if options.port is not None:
        command.append(f"--ServerApp.port={options.port}")
    if os.name == "nt":
        return subprocess.run(command, cwd=project, check=False).returncode
    # JupyterLab takes the place of this process: whoever ends it ends the server and its kernels, and leaves none behind.
    sys.stdout.flush()
    os.chdir(project)
    os.execv(command[0], command)


def doctor(options: argparse.Namespace) -> int:
    """Print what this machine has and lacks."""
    from dlcourse.doctor import examine, report

    findings = examine()
    print(json.dumps([vars(finding) for finding in findings]) if options.json else report(findings))
    return 0 if all(finding.ok for finding in findings) else 1


def train(options: argparse.Namespace) -> int:
    """Print the bill, train, evaluate, and print what it took."""
    from dlcourse import training

    return training.run(options)


def watch(options: argparse.Namespace) -> int:
    """Watch the memory of a process that is not this one, with its children, until it ends."""
    from dlcourse.memory import NotSeen
    from dlcourse.memory.terminal import show_watch

    try:
        show_watch(options.pid, every=options.every, log=options.log)
    except NotSeen as error:
        print(f"dlcourse: error: {error}", file=sys.stderr)
        return 2
    return 0


def admit(options: argparse.Namespace) -> int:
    """Say whether the memory of a training step fits a budget, or each step of a file: ends with 0 if so, 1 if not."""
    from dlcourse import budget

    return budget.run(options)


def bench(options: argparse.Namespace) -> int:
    """Time a step and an inference beside other ways to do them, each in a process of its own, in turn."""
    from dlcourse.bench import report

    kind = "frontier" if options.what else "growth" if options.growth else "looks" if options.monitor else "cases"
    getattr(report, kind)(options)
    return 0


class _Parser(argparse.ArgumentParser):
    """argparse, with a suggestion where an option is misspelt."""

    def error(self, message: str) -> NoReturn:
        unknown = message.removeprefix("unrecognized arguments: ").split()[0] if "unrecognized" in message else ""
        known = [option for action in self._actions for option in action.option_strings]
        close = difflib.get_close_matches(unknown, known, n=1)
        self.exit(
            2, f"{self.prog}: error: {message}{f'; did you mean {close[0]}?' if close else ''}\n{self._short()}\n"
        )

    def _short(self) -> str:
        """The usage in one line: what must be given, and where the rest is named."""
        needed = [self.needed] if hasattr(self, "needed") else []
        for action in self._actions:
            name = action.metavar or (f"{{{','.join(action.choices)}}}" if action.choices else action.dest.upper())
            if action.required:
                needed.append(" ".join([*action.option_strings[:1], str(name)]))
        return f"usage: {' '.join([self.prog, *needed])} [options]; {self.prog} --help names them"

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        parsed, unknown = self.parse_known_args(args, namespace)
        if unknown:
            chosen = getattr(parsed, "parser", self)
            chosen.error(f"unrecognized arguments: {' '.join(unknown)}")
        return parsed


def _whole(text: str, least: int = 0, most: float = math.inf) -> int:
    try:
        number = int(text)
    except ValueError:
        number = least - 1
    if not least <= number <= most:
        until = "" if most == math.inf else f" and at most {most}"
        raise argparse.ArgumentTypeError(f"must be a whole number of at least {least}{until}, got {text!r}")
    return number


def _seconds(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < threading.TIMEOUT_MAX:
        raise argparse.ArgumentTypeError(f"must be a number of seconds, more than 0, got {text!r}")
    return number


_positive = functools.partial(_whole, least=1)
_port = functools.partial(_whole, least=1, most=65535)


def _path(text: str) -> str:
    if not text.strip():
        raise argparse.ArgumentTypeError(f"must be the name of a file or folder, got {text!r}")
    return text


def _parser() -> argparse.ArgumentParser:
    from dlcourse.doctor import usable_cores

    parser = _Parser(prog="dlcourse", description=__doc__, allow_abbrev=False)
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(metavar="COMMAND", required=True)

    def command(run: Any) -> argparse.ArgumentParser:
        text = (run.__doc__ or "").strip()
        one = commands.add_parser(run.__name__, help=text, description=text, allow_abbrev=False)
        one.set_defaults(run=run, parser=one)
        return one

    one = command(lab)
    one.add_argument("--no-browser", action="store_true", help="print the address, open nothing")
    one.add_argument("--port", type=_port, help="the port to serve at (default: 8888 or the next free one)")

    one = command(doctor)
    one.add_argument("--json", action="store_true", help="for machines")

    one = command(train)
    one.add_argument("network", choices=NETWORKS, help="the network to train")
    one.add_argument("--data", choices=DATA, default="digits", help="(default: %(default)s)")
    one.add_argument("--samples", type=_positive, help="how many training pictures to draw, for shapes")
    one.add_argument(
        "--path", type=_path, help="the archive or folder to read cifar10 or mnist from, instead of the network"
    )
    one.add_argument("--epochs", type=_positive, default=1, help="passes over the data (default: %(default)s)")
    one.add_argument("--batch-size", type=_positive, default=100, help="samples of a step (default: %(default)s)")
    one.add_argument("--micro-batch", type=_positive, default=25, help="samples at a time (default: %(default)s)")
    workers = min(4, usable_cores())
    one.add_argument("--workers", type=_positive, default=workers, help="threads (default: the cores, at most 4)")
    one.add_argument("--optimizer", choices=OPTIMIZERS, default="Adam", help="(default: %(default)s)")
    one.add_argument("--lr", type=float, help="learning rate (default: the optimizer's own)")
    one.add_argument(
        "--seed", type=_whole, default=0, help="of parameters, data order and dropout (default: %(default)s)"
    )
    one.add_argument(
        "--checkpoint", type=_path, metavar="FOLDER", help="write the state there, at the end of the training"
    )
    one.add_argument(
        "--checkpoint-every", type=_positive, metavar="STEPS", help="write it after each so many steps, too"
    )
    one.add_argument("--resume", action="store_true", help="go on from the checkpoint, to the bit")
    one.add_argument(
        "--monitor",
        type=_seconds,
        metavar="SECONDS",
        help="show memory by kind, renewed each so often (less often if it took over 1 %% of a core)",
    )
    one.add_argument("--monitor-log", type=_path, metavar="FILE", help="add each observation to it, a line of JSON")
    one.add_argument("--json", action="store_true", help="one JSON object at the end, and nothing else")

    one = command(watch)
    one.add_argument("pid", metavar="PID", type=_positive, help="the number of the process")
    one.add_argument("--every", type=_seconds, default=1.0, metavar="SECONDS", help="(default: %(default)g)")
    one.add_argument("--log", type=_path, metavar="FILE", help="add each observation to it, a line of JSON")

    one = command(admit)
    one.needed = "MODULE:FUNCTION --budget SIZE"  # type: ignore[attr-defined]
    text = "gives (model, in_shape, optimizer); or a network's name; or a FILE.toml, as --file"
    one.add_argument("network", metavar="MODULE:FUNCTION", nargs="?", help=text)
    one.add_argument(
        "--file", type=_path, metavar="FILE", help="a table for each network: model, data, batch, limit, …"
    )
    one.add_argument("--budget", metavar="SIZE", help="bytes of arrays, such as 200MiB")
    one.add_argument("--batch-size", type=_positive, help="samples of a step (default: 100)")
    one.add_argument("--micro-batch", type=_positive, help="samples at a time (default: the whole batch)")
    one.add_argument("--workers", type=_positive, help="threads (default: 1)")
    one.add_argument("--inference", action="store_true", help="a forward pass alone, that keeps nothing")
    one.add_argument("--json", action="store_true", help="one JSON object, for machines")

    one = command(bench)
    one.add_argument(
        "what", nargs="?", choices=("frontier",), help="techniques that save bytes, each in bytes and seconds"
    )
    one.add_argument("--accuracy", action="store_true", help="of the frontier's techniques too: an hour")
    one.add_argument("--only", metavar="WORDS", help='cases with these words in their name, such as "step cifar_cnn"')
    one.add_argument("--rounds", type=_positive, default=7, help="counted runs of each side (default: %(default)s)")
    one.add_argument(
        "--threads", type=_positive, default=min(2, usable_cores()), help="of every side (default: %(default)s)"
    )
    one.add_argument("--torch-python", metavar="PATH", help="an interpreter that has PyTorch, to measure beside it")
    one.add_argument("--growth", action="store_true", help="how a step of ours grows with batch, size, channels, depth")
    one.add_argument("--monitor", action="store_true", help="what the monitor costs beside a training on four workers")
    one.add_argument("--picture", type=_path, metavar="FILE", help="write seconds against bytes as a PNG")
    one.add_argument("--json", action="store_true", help="one JSON object, for machines")
    return parser


if __name__ == "__main__":
    sys.exit(main())
