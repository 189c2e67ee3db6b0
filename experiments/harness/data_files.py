"""Data that the package does not hold: their names, where to get them, and where the user has them.

``--data`` names a folder with the files, or one file as ``NAME:PATH``; it may be given again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from dualquery.runtime.errors import BadInputError, did_you_mean

_UCI = "the UCI Machine Learning Repository"
_AUTHORS = "the repository ejgallego/dualquery on GitHub, data/compressed"
_STAR = "the repository UCLA-StarAI/Density-Estimation-Datasets on GitHub"


@dataclass(frozen=True)
class DataFile:
    """A public data set."""

    name: str  # its name in ``--data NAME:PATH``
    place: str
    """Where it is looked for in a folder given with ``--data``; there and in the folder itself."""
    origin: str  # where to get it
    prefix: str = ""
    """The format's prefix for `dualquery.data.readers.formats.parse_source`, with its colon; may be
    empty."""
    other_name: str = ""  # another name that the file may have
    deep: bool = False  # whether it is looked for in folders within the folder, too

    @property
    def paths(self) -> tuple[str, ...]:
        """Where it is looked for in a folder, first match first."""
        name = Path(self.place).name
        others = (name, name.removesuffix(".gz"), self.other_name)
        return tuple(dict.fromkeys((self.place, *filter(None, others))))


_KNOWN = (
    DataFile("kdd99", "dualquery/kdd99.clean.gz", f"kdd99.clean in kdd99.tar.bz2 of {_AUTHORS}",
             "kdd99:"),
    DataFile("netflix", "netflix",
             "the folder of the Netflix Prize files, which may not be passed on: only who has them "
             "can use them", "netflix:", "download"),
    DataFile("npm-deps", "sparse/npm-deps.dat.gz",
             "the npm package dependent-packages 2.2.2, one line of item numbers a package",
             "fimi:"),
    DataFile("plants", "sparse/plants.csv.gz", f"{_STAR}, datasets/plants", "matrix:"),
    DataFile("pumsb_star", "sparse/pumsb_star.csv.gz", f"{_STAR}, datasets/pumsb_star", "matrix:"),
    DataFile("mushroom", "sparse/mushroom.dat.gz", "FIMI's mushroom.dat", "fimi:"),
    DataFile("groceries", "sparse/groceries.dat.gz",
             "Groceries of the R package arules, one line of item numbers a basket", "fimi:"),
    DataFile("msweb", "sparse/msweb.dat.gz",
             "MSWeb of the R package recommenderlab, one line of item numbers a visitor", "fimi:"),
    DataFile("facebook-pages", "sparse/facebook-pages.dat.gz",
             "facebook_large of the repository benedekrozemberczki/datasets on GitHub, one line of "
             "feature numbers a page", "fimi:"),
    DataFile("mcsherry-adult", "dualquery/mcsherry-adult.txt.gz",
             f"mcsherry-adult.txt.bz2 of {_AUTHORS}", "bitstring:"),
    DataFile("adult-train", "mwem/adult_train.csv.gz", f"adult.data of {_UCI}, with a header"),
    DataFile("adult-test", "mwem/adult_test.csv.gz", f"adult.test of {_UCI}, with a header"),
    DataFile("transfusion", "mwem/transfusion.csv",
             f"Blood Transfusion Service Center of {_UCI}"),
    DataFile("mildew", "mwem/mildew.csv", "mildew of the R package gRbase"),
    DataFile("czech", "mwem/czech.csv", "reinis of the R package gRbase"),
    DataFile("rochdale", "mwem/rochdale.csv", "Rochdale of the R package vcd"),
    DataFile("nltcs", "mwem/nltcs.csv",
             "2to16disabilityNLTCS of StatLib, whose user accepts a data use agreement",
             other_name="2to16disabilityNLTCS.txt"),
    *(
        DataFile(name, f"nist/{name}.csv.gz", "NIST's Diverse Community Data Excerpts", deep=True)
        for name in ("national2019", "ma2019", "tx2019")
    ),
)  # fmt: skip

DATA_FILES: Mapping[str, DataFile] = {file.name: file for file in _KNOWN}
"""The data sets that experiments ask for by name."""


@dataclass(frozen=True)
class DataFiles:
    """Where the user has data that the package does not hold.

    Raises
    ------
    BadInputError
        If a folder or file is not there, or a name is not known.
    """

    given: Sequence[str] = ()  # values of ``--data``
    _found: Mapping[str, Path] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        found: dict[str, Path] = {}
        for text in self.given:
            found |= _files(text)
        object.__setattr__(self, "_found", found)

    def __contains__(self, name: str) -> bool:
        return name in self._found

    @property
    def paths(self) -> Sequence[Path]:
        """Where all data sets are that the user has."""
        return [*self._found.values()]

    def path(self, name: str, without: str) -> Path:
        """Return the path of a data set, a key of `DATA_FILES`.

        Raises
        ------
        BadInputError
            If it was not given: says where to get it and, in the words of ``without``, what runs
            without it.
        """
        if name not in self._found:
            file = DATA_FILES[name]
            raise BadInputError(
                f"--data: {name} is needed. Get it from {file.origin}, and give --data "
                f"{name}:PATH or a folder that holds {file.place}. {without}"
            )
        return self._found[name]

    def source(self, name: str, without: str) -> str:
        """Return a data set as text for `dualquery.data.readers.formats.parse_source`.

        Raises
        ------
        BadInputError
            As `path`.
        """
        return f"{DATA_FILES[name].prefix}{self.path(name, without)}"


def _files(text: str) -> dict[str, Path]:
    """Return the data sets that one value of ``--data`` gives."""
    name, colon, rest = text.partition(":")
    if colon and name in DATA_FILES:
        path = Path(rest)
        if not path.is_file() and not (name == "netflix" and path.is_dir()):
            raise BadInputError(
                f"--data {text}: there is no such file; get {name} from {DATA_FILES[name].origin}. "
                "Without --data, every experiment runs with --quick"
            )
        return {name: path}
    folder = Path(text)
    if folder.is_dir():
        found = {
            file.name: path
            for file in reversed(_KNOWN)
            for place in reversed(file.paths)
            for path in sorted(folder.glob(f"{'**/' * file.deep}{place}"), reverse=True)
        }
        if found:
            return found
        raise BadInputError(
            f"--data {text}: the folder holds none of the known files ("
            f"{', '.join(file.place for file in _KNOWN)})"
        )
    if folder.is_file():
        for file in _KNOWN:
            if folder.name in {Path(place).name for place in file.paths}:
                return {file.name: folder}
        raise BadInputError(
            f"--data {text}: which data set is this? Write NAME:{text} with one of "
            f"{', '.join(DATA_FILES)}"
        )
    guess = did_you_mean(name, DATA_FILES) if colon else ""
    raise BadInputError(
        f"--data {text}: there is no such folder or file{guess}. Give a folder, or NAME:PATH with "
        f"one of {', '.join(DATA_FILES)}. Without --data, every experiment runs with --quick"
    )
