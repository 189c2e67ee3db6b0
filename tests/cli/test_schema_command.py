"""``dualquery schema`` and ``schema check``."""

import io
import json


def test_schema_drafts_a_file_that_release_takes(dualquery, files, here) -> None:
    assert "draft" in dualquery("schema", files[0], "--out", "draft.json").ok.out
    release = [
        "release", files[0], "--schema", "draft.json", "--mechanism", "zero", "--queries", "9",
        "--json",
    ]  # fmt: skip
    assert not dualquery(*release, "--out", "unedited").ok.json["privacy"]["private"]
    draft = here / "draft.json"
    text = draft.read_text(encoding="utf-8")
    draft.write_text(text.replace('"declared": false', '"declared": true'), encoding="utf-8")
    assert dualquery(*release, "--out", "edited").json["privacy"]["private"]


def test_a_table_without_a_header_is_noticed(dualquery, here) -> None:
    (here / "t.csv").write_text("39,Private\n40,Public\n41,Private\n")
    assert "is the first row a header?" in dualquery("schema", "t.csv").err
    (here / "t.csv").write_text("age,job\n40,Public\n41,Private\n")
    assert "is the first row a header?" not in dualquery("schema", "t.csv").err


def test_schema_leaves_existing_files_alone(dualquery, files, here) -> None:
    (here / "mine.json").write_text("mine")
    done = dualquery("schema", files[0], "--out", "mine.json")
    assert done.refusal.endswith("exists already; delete it, or name another file")
    assert (here / "mine.json").read_text() == "mine"


def test_a_place_that_cannot_be_is_refused_before_the_table_is_read(
    dualquery, files, here, monkeypatch
) -> None:
    monkeypatch.setattr("dualquery.data.drafts.drafting.TableCounts", None)
    monkeypatch.setattr("dualquery.data.schema.schema_files.load_schema", None)
    for words in ([files[0]], ["check", files[1]]):
        done = dualquery("schema", *words, "--out", here / "no" / "x.json")
        assert done.refusal.endswith(f"there is no folder {here / 'no'}; make it first")
        done = dualquery("schema", *words, "--out", "x.toml")
        assert done.last.endswith("schemas are written as JSON; name a file that ends in .json")


def test_schema_check_says_what_a_schema_means(dualquery, files, here, tmp_path) -> None:
    done = dualquery("schema", "check", files[1]).ok
    assert "5 columns" in done.out
    assert "declared" in done.out
    written = tmp_path / "drafted.json"
    written.write_text('{"columns": [{"name": "a", "kind": "binary"}]}')
    done = dualquery("schema", "check", written, "--out", "mine.json")
    assert "not declared, so releases with it are not private" in " ".join(done.out.split())
    assert dualquery("schema", "check", "mine.json").code == 0
    own = [{"name": name, "kind": "binary", "missing_values": [9, "x"]} for name in "ab"]
    written.write_text(json.dumps({"missing_values": ["", "?"], "columns": own}))
    done = dualquery("schema", "check", written)
    said = " ".join(done.out.split())
    assert "column 'a': missing values of its own are '9', 'x' note: column 'b'" in said
    assert said.count("missing values of all columns are null, '', '?'") == 1
    partial = {"partial": True, "rules": ["a=x => b=y"], "declared": True}
    written.write_text(json.dumps({**partial, "columns": [{"name": "a", "kind": "categorical"}]}))
    done = dualquery("schema", "check", written)
    said = " ".join(done.out.split())
    assert (done.code, "what is learned may keep or not: a=x => b=y" in said) == (0, True)
    assert "declared; what it does not say is learned" in said
    done = dualquery("budget", "plan", "-n", "100", "--epsilon", "1", "--schema", written)
    assert "is partial: use release --dry-run" in done.last
    written.write_text('{"columns": [{"name": "a", "kind": "binry"}]}')
    assert "kind is 'binry'" in dualquery("schema", "check", written).refusal


def test_the_price_of_a_schema_is_told_beforehand(dualquery, here) -> None:
    (here / "t.csv").write_text("age,job\n40,Public\n41,Private\n")
    told = dualquery("release", "t.csv", "--dry-run", "--rows", 50_000, "--json").json["schema"]
    assert (told["columns"], told["rows"]) == (2, 50_000)
    planned = dualquery("budget", "plan", "-n", 50_000, "--epsilon", 1, "--columns", 2, "--json")
    assert planned.json["schema"] == told
    more = dualquery("budget", "plan", "-n", 50_000, "--epsilon", 1, "--columns", 20, "--json")
    assert more.json["schema"]["listed_from_rows"] > 2 * told["listed_from_rows"]
    (here / "known.json").write_text(
        '{"declared": true, "partial": true, "columns": [{"name": "job", "kind": "categorical"}, '
        '{"name": "age", "kind": "numeric", "edges": [0, 100]}]}'
    )
    ask = ("release", "t.csv", "--dry-run", "--schema", "known.json", "--json")
    less = dualquery(*ask, "--rows", 50_000).json["schema"]
    assert less["listed_from_rows"] < told["listed_from_rows"]
    assert all(dualquery(*words).code == 2 for words in (ask, (*ask, "--rows", 90)))
    for said, named in (("true", "false"), ('"name": "job"', '"name": "Job"')):
        (here / "other.json").write_text((here / "known.json").read_text().replace(said, named, 1))
        asked = "release", "t.csv", "--schema", "other.json"
        assert dualquery(*asked, "--dry-run", "--rows", 50_000).last == dualquery(*asked).last


def test_a_schema_that_is_paid_for_is_shown_where_it_cannot_be_written(dualquery, here) -> None:
    (here / "t.csv").write_text("x\n" + "1\n2\n" * 900)
    done = dualquery("schema", "t.csv", "--epsilon", 5, "--delta", 1e-6, "--out", "x" * 999)
    assert done.code == 2
    assert json.loads(done.out[done.out.index("{") :])["columns"][0]["name"] == "x"


def test_a_table_comes_through_a_pipe(dualquery, monkeypatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"a;b\n1;x\n2;y\n")))
    drafted = dualquery("schema", "-", "--csv", "delimiter=;")
    assert [each["name"] for each in json.loads(drafted.out)["columns"]] == ["a", "b"]
