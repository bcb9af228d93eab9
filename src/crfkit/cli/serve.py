"""`crfkit serve`: answer requests for trained models over HTTP."""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from crfkit.cli.options import quiet_option, threads_option
from crfkit.cli.streams import complain
from crfkit.errors import ArgumentError, InputError, MissingFileError, NotLoadedError
from crfkit.models import check_no_folder


def name_models(models: Sequence[str]) -> dict[str, Path]:
    """`["names.crf", "pos=tagger.crf"]` as paths by name: the given one, or that of the file."""
    found: dict[str, Path] = {}
    for given in models:
        name, equals, path = given.partition("=")
        if not equals:
            name, path = Path(given).stem, given
        if name in found:
            raise ArgumentError(f"two models are called {name}, expected NAME=MODEL for one of them")
        check_no_folder(path)
        if not Path(path).is_file():
            raise MissingFileError(f"{path}: there is no such model file")
        found[name] = Path(path)
    return found


def load_served(path: Path) -> Any:
    """A model of this package or of another toolkit."""
    from crfkit.cli.model_input import is_model, read_model
    from crfkit.pipeline import load

    model = load(path) if is_model(path) else read_model(path).crf
    _check_resources(model, path)
    return model


def _check_resources(model: Any, path: Path) -> None:
    """Refuse a model that cannot be asked, as its file names resources that it does not hold."""
    from crfkit.features import MissingResource

    models = [model, *getattr(model, "components_", ())]
    for part in [
        *models,
        *(getattr(part, "crf_", None) for part in models),
    ]:  # taggers of treebanks have a CRF
        needed = dict(getattr(part, "resources", None) or {}) | {"vectors": getattr(part, "vectors", None)}
        for name, resource in needed.items():
            if isinstance(resource, MissingResource):
                raise NotLoadedError(
                    f"{path}: the model needs the {resource.KIND} {name!r}, which its file does not hold: "
                    "train it with --bundle, or save it with bundle=True"
                )


@click.command("serve", short_help="Answer requests for trained models over HTTP, with a web page.")
@click.argument("models", nargs=-1, required=True, metavar="MODEL [MODEL …]")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", default=8000, show_default=True, type=click.IntRange(0, 65535), help="0: a free one.")
@click.option(
    "--reload-models", is_flag=True, help="Read model files again when they change (SIGHUP does too)."
)
@click.option(
    "--allowed-host",
    multiple=True,
    metavar="NAME",
    help="Answer requests to this host name too; repeatable.  [default: those of a loopback address, else all]",
)
@click.option("--train", is_flag=True, help="Let annotation tools train models of labels.")
@click.option(
    "--save-dir",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="With --train: write the models that are trained there.",
)
@click.option(
    "--max-body", type=click.IntRange(min=1), metavar="BYTES", help="Of a request.  [default: 2097152]"
)
@click.option("--max-texts", type=click.IntRange(min=1), metavar="N", help="Of a request.  [default: 1000]")
@click.option("--max-tokens", type=click.IntRange(min=1), metavar="N", help="Of a request.  [default: 50000]")
@click.option("--max-sentence", type=click.IntRange(min=1), metavar="N", help="Tokens.  [default: 2000]")
@click.option("--max-tree", type=click.IntRange(min=1), metavar="N", help="Words to parse.  [default: 250]")
@click.option("--max-nbest", type=click.IntRange(min=1), metavar="N", help="Outputs.  [default: 50]")
@click.option("--max-requests", type=click.IntRange(min=1), metavar="N", help="At a time.  [default: 128]")
@click.option(
    "--max-connections", type=click.IntRange(min=1), metavar="N", help="At a time.  [default: 2000]"
)
@click.option("--wait-seconds", type=float, metavar="S", help="For the turn of a request.  [default: 20]")
@click.option("--body-seconds", type=float, metavar="S", help="For a body to arrive.  [default: 20]")
@click.option("--header-seconds", type=float, metavar="S", help="For headers to arrive.  [default: 10]")
@threads_option
@quiet_option
def command(
    models: Sequence[str],
    host: str,
    port: int,
    reload_models: bool,
    allowed_host: Sequence[str],
    train: bool,
    save_dir: Path | None,
    threads: int | None,
    quiet: bool,
    **limits: Any,
) -> None:
    """Answer requests for trained MODELs (or NAME=MODEL) over HTTP: labels, spans with probabilities, the n best,
    explanations, trees. The page at / shows them, the one at /docs describes the API.

    Ends on Ctrl-C or SIGTERM, once the requests that are under way are answered.
    """
    try:
        from crfkit.serve import Limits, serve
    except ImportError as error:
        raise InputError(str(error)) from None
    if save_dir is not None:
        if not train:
            raise ArgumentError("--save-dir was given without --train, which makes models to save")
        if not save_dir.is_dir():
            raise ArgumentError(f"--save-dir {save_dir}: there is no such folder")
    level = logging.ERROR if quiet else logging.INFO
    logging.basicConfig(format="crfkit: %(message)s", level=logging.WARNING)
    logging.getLogger("crfkit.serve").setLevel(level)
    logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
    given = {name: value for name, value in limits.items() if value is not None}

    def started(address: str) -> None:
        if not quiet:
            complain(f"{', '.join(paths)}: {address} (API: {address}/docs); Ctrl-C ends")

    paths = name_models(models)
    serve(
        paths,
        host=host,
        port=port,
        limits=Limits(**given),
        loader=load_served,
        n_threads=threads,
        reload_models=reload_models,
        allowed_hosts=allowed_host,
        train=train,
        save_dir=save_dir,
        started=started,
    )
