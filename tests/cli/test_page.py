"""The page of the command line: its table of options is the one that the request declares."""

import sys
from pathlib import Path

from dualquery.requests import ReleaseSpec
from dualquery.runtime.option_fields import BUDGET, DATA, MECHANISM, RUN, WORKLOAD, options_of

PAGE = Path(__file__).resolve().parents[2] / "dualquery" / "cli" / "README.md"
PANELS = (DATA, WORKLOAD, MECHANISM, BUDGET, RUN)
BEGIN, END = "<!-- options of release, by tests/cli/test_page.py -->\n", "<!-- end -->"


def table() -> str:
    """Return the options of ``dualquery release`` as Markdown."""
    lines = ["| option | default | what it says |", "|---|---|---|"]
    for each in sorted(options_of(ReleaseSpec).values(), key=lambda each: PANELS.index(each.panel)):
        names = ", ".join(f"`{flag}`" for flag in each.flags) or f"`{each.metavar}`"
        default = "" if each.default is None or each.default is False else f"`{each.default}`"
        text = each.help.replace("|", "\\|")
        lines.append(f"| {names} | {default} | {text} |")
    return "\n".join(lines) + "\n"


def test_the_table_of_options_is_up_to_date() -> None:
    """``python -m tests.cli.test_page`` writes it anew."""
    assert PAGE.read_text("utf-8").partition(BEGIN)[2].partition(END)[0] == table()


def test_the_page_is_short() -> None:
    before, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
    assert len(f"{before}{rest.partition(END)[2]}".split()) <= 2000


if __name__ == "__main__":
    before, mark, rest = PAGE.read_text("utf-8").partition(BEGIN)
    if not mark:
        sys.exit(f"{PAGE} has no line {BEGIN}")
    PAGE.write_text(before + mark + table() + END + rest.partition(END)[2], "utf-8")
