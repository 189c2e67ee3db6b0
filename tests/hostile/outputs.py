"""Release folders, files of counts, budget files: what this program wrote, or so it seems."""

import json
import random
import tempfile
import zlib
from functools import partial
from pathlib import Path

import numpy as np

import dualquery
from dualquery.budgets.account import CHARGE, Claim, Entry, new_token
from dualquery.budgets.budget_file import BudgetFile
from dualquery.checkpoints import checkpoint
from dualquery.checkpoints.checkpoint import Checkpoint
from dualquery.privacy.composition import Cost
from dualquery.privacy.events import GaussianNoise
from dualquery.releases.answer.answering import answer_queries
from dualquery.releases.keep.folder import load_release
from dualquery.room.ground import Ground
from dualquery.verification import verify
from tests.hostile.mutation import Mutator, spoil_bytes, spoil_json, spoil_table
from tests.hostile.parser import Parser
from tests.tables import SCHEMA, people, reseal

_MADE: dict[str, dict[str, bytes]] = {}


def _releases() -> dict[str, dict[str, bytes]]:
    """Return the files of a few tiny releases; made once in a process."""
    if not _MADE:
        table = people(60)
        with tempfile.TemporaryDirectory() as place:
            # Those with a guarantee have no seed, so they are others each time.
            for name, mechanism, seed in (
                ("dualquery", "dualquery", 1),
                ("gaussian", "gaussian", 1),
                ("mwem", "mwem", 1),
                ("matrix", "matrix", 1),
                ("private game", "dualquery", None),
                ("private noise", "gaussian", None),
                ("private sums", "laplace", None),
            ):
                made = dualquery.release(
                    table, schema=SCHEMA, queries=20, way=2, mechanism=mechanism, seed=seed,
                    delta=0.0 if mechanism == "laplace" else 1e-4,
                    options={"rounds": "3", "samples": "4"} if mechanism == "dualquery" else {},
                )  # fmt: skip
                made.save(Path(place) / name)
                _MADE[name] = {f.name: f.read_bytes() for f in (Path(place) / name).iterdir()}
    return _MADE


def _release_examples(file: str) -> list[bytes]:
    return [f"{name}\n".encode() + made[file] for name, made in _releases().items() if file in made]


def _verified_examples() -> list[bytes]:
    """Return release.json of each release; most often that whose epsilon is recomputed at once."""
    examples = _release_examples("release.json")
    return [*examples, *[examples[-1]] * 30]


def _spoil_after_name(mutate: Mutator) -> Mutator:
    def spoil(chance: random.Random, data: bytes) -> bytes:
        name, _, content = data.partition(b"\n")
        if name.decode("latin-1") not in _releases():  # spliced
            name = b"dualquery"
        return name + b"\n" + mutate(chance, content)

    return spoil


def _read_release(file: str, data: bytes, folder: Path) -> None:
    name, _, content = data.partition(b"\n")
    for other, kept in _releases()[name.decode()].items():
        (folder / other).write_bytes(content if other == file else kept)
    _seal(folder)
    release = load_release(folder)
    json.dumps(release.summary(), allow_nan=False)
    assert repr(release)
    assert release.privacy.text()
    assert len(release.answer_table) == len(release.workload) == len(release.answers)
    assert np.all(np.isfinite(release.answers))
    if release.records is not None and zlib.crc32(data) % 4 == 0:
        sums = np.add.reduceat(release.records, release.schema.domain.offsets[:-1], axis=1)
        assert np.all(sums[:, release.schema.domain.sizes > 1] == 1)
        assert release.synthetic is not None
        answer_queries(release, [release.workload.text(release.schema)[0]])


def _read_verified(data: bytes, folder: Path) -> None:
    """Check a release whose record was spoilt, with digests that fit it or not."""
    name, _, content = data.partition(b"\n")
    for other, kept in _releases()[name.decode()].items():
        (folder / other).write_bytes(content if other == "release.json" else kept)
    _seal(folder)
    report = verify(folder)
    assert all(isinstance(fault, str) for fault in report.faults)
    assert report.faults or report.recomputed is not None


def _seal(folder: Path) -> None:
    """Give a folder digests that fit it, where any do."""
    record = folder / "release.json"
    content = record.read_bytes()
    try:
        reseal(folder)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        record.write_bytes(content)


def _checkpoint_examples() -> list[bytes]:
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "checkpoint"
        made = Checkpoint(path)
        made.same("queries", {"way": 2})
        made.begin((GaussianNoise(2.0, 1.0),) * 3, Ground("counts", "definition", 1.0), spare=False)
        made.end(np.arange(3.0))
        made.claim()
        made.finish()
        made.close()
        return [path.read_bytes()]


def _spoil_lines(chance: random.Random, data: bytes) -> bytes:
    """Spoil a checkpoint; as a rule with digests that fit, as one who edits it could make them."""
    if chance.random() < 0.2:
        return spoil_bytes(chance, data)
    entries = [line.partition(b" ")[2] for line in data.splitlines() if b" " in line]
    if not entries:
        return spoil_bytes(chance, data)
    at = chance.randrange(len(entries))
    entries[at] = spoil_json(chance, entries[at]).replace(b"\n", b"")
    digest, out = checkpoint._BEGINNING, []
    for entry in entries:
        text = entry.decode("ascii", "replace")
        digest = checkpoint._next(digest, text)
        out.append(f"{digest} {text}\n".encode("ascii", "replace"))
    return b"".join(out)


def _read_checkpoint(data: bytes, folder: Path) -> None:
    path = folder / "checkpoint"
    path.write_bytes(data)
    read = Checkpoint(path)
    try:
        assert read.draws >= read.lost >= 0
        assert read.recorded() is None or read.recorded().events
    finally:
        read.close()


def _budget_examples() -> list[bytes]:
    with tempfile.TemporaryDirectory() as place:
        made = []
        for kind in ("sum", "zcdp"):
            path = Path(place) / kind
            file = BudgetFile.create(path, epsilon=2.0, delta=1e-6, composition=kind)
            made.append(path.read_bytes())
            entry = Entry(CHARGE, new_token(), 0, Cost(0.001, 0.1, 1e-9), "mwem", "", "2026-01-01")
            claim = Claim(entry.release, new_token())
            file.write(lambda _, what=(entry, claim): what)
            made.append(path.read_bytes())
    return made


def _read_budget(data: bytes, folder: Path) -> None:
    path = folder / "budget"
    path.write_bytes(data)
    assert BudgetFile(path).read() == BudgetFile(path).read()


OUTPUTS: dict[str, Parser] = {
    **{
        f"release: {file}": Parser(
            partial(_release_examples, file),
            _spoil_after_name(mutate),
            partial(_read_release, file),
        )
        for file, mutate in (
            ("release.json", spoil_json),
            ("answers.parquet", spoil_table),
            ("synthetic.parquet", spoil_table),
            ("trace.parquet", spoil_table),
            ("measurements.parquet", spoil_table),
            ("model.npz", spoil_bytes),
        )
    },
    "verify": Parser(_verified_examples, _spoil_after_name(spoil_json), _read_verified),
    "checkpoint": Parser(_checkpoint_examples, _spoil_lines, _read_checkpoint),
    "budget file": Parser(_budget_examples, spoil_bytes, _read_budget),
}
