"""``dualquery verify`` and ``dualquery sign``: a release as seen from outside."""

import math
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from dualquery.cli.shared_options import Json, ReleaseFolder
from dualquery.cli.terminal import Terminal
from dualquery.runtime.errors import BadInputError
from dualquery.runtime.escaping import terminal_line
from dualquery.runtime.files import require_new, whole_file


def verify(
    release: ReleaseFolder,
    signature: Annotated[
        Path | None, typer.Option(help="Signature to check, made by 'sign'; needs --key.")
    ] = None,
    key: Annotated[Path | None, typer.Option(help="Public Ed25519 key of the signer, PEM.")] = None,
    as_json: Json = False,
) -> None:
    """Check that a release's guarantee follows from its proof record.

    Computes epsilon and delta anew from the private events that the release
    lists, by code that shares nothing with the program that made it, and checks
    the digest of every file. Exits 0 if all is confirmed, else 2; a release
    that is not private has nothing to confirm.

    It checks arithmetic and integrity, not the proofs of sensitivities, nor
    who wrote the folder: a signature tells that.

    Example:

      dualquery verify my-release --signature my-release.sig --key public.pem
    """
    from dualquery.privacy.guarantee import round_up
    from dualquery.verification import verify as examine
    from dualquery.verification.signature import signed

    if (signature is None) != (key is None):
        raise BadInputError("--signature and --key go together: give both or neither")
    report = examine(release)
    faults = list(report.faults)
    if signature is not None and key is not None:
        try:
            if not signed(release, signature, key):
                faults.append(f"{signature} is no signature of it by the owner of {key}")
        except (OSError, ValueError) as fault:
            raise BadInputError(f"the signature cannot be checked: {fault}") from fault
    stated = {"confirmed": not faults, "signed": signature is not None and not faults}
    # JSON has no infinity, which numbers of a refuted release may be.
    unlike = (math.inf, -math.inf)
    numbers = {key: None if each in unlike else each for key, each in asdict(report).items()}
    Terminal(machine=as_json).emit({"release": str(release), **stated, **numbers, "faults": faults})
    if faults:
        raise BadInputError(f"{release} is not confirmed: {'; '.join(faults)}")
    if not as_json:
        given = terminal_line(f", conditional on {report.condition}") if report.condition else ""
        typer.echo(
            f"Confirmed{given}: the guarantee ({round_up(report.epsilon)}, "
            f"{round_up(report.delta)}) follows from the events listed (epsilon "
            f"computed anew: {report.recomputed:.6g}), and all files are as they were written."
        )
        unsigned = "Who wrote them, a signature tells: dualquery sign, verify --signature --key."
        typer.echo(f"The signature is by the owner of {key}." if signature else unsigned)


def sign(
    release: ReleaseFolder,
    key: Annotated[Path, typer.Option(help="Your private Ed25519 key, PEM without a password.")],
    out: Annotated[
        Path | None, typer.Option(help="File for the signature; default RELEASE.sig.")
    ] = None,
) -> None:
    """Sign a release, so that others can tell who wrote it.

    The signature stands beside the folder, not in it. OpenSSL makes a key:
    openssl genpkey -algorithm ed25519 -out private.pem, and from it the public
    one: openssl pkey -in private.pem -pubout -out public.pem

    Example:

      dualquery sign my-release --key private.pem
    """
    from dualquery.verification import verify as examine
    from dualquery.verification.signature import sign as signature_of

    if damaged := examine(release).damaged:
        raise BadInputError(f"{release} is not whole and was not signed: {'; '.join(damaged)}")
    folder = release.resolve()
    target = folder.with_name(f"{folder.name}.sig") if out is None else out
    if folder in target.resolve().parents:
        raise BadInputError(f"{target} lies in the release's folder; name a place outside it")
    require_new(target)
    try:
        found = signature_of(release, key)
    except (OSError, ValueError) as fault:
        raise BadInputError(f"{release} was not signed: {fault}") from fault
    with whole_file(target) as part:
        part.write_bytes(found)
    typer.echo(f"signature written to {target}")
