"""``dualquery evaluate``."""


def test_evaluate_json_has_the_keys_of_the_contract(dualquery, released, files) -> None:
    done = dualquery("evaluate", released, files[0], "--json", "--quiet")
    assert done.json.keys() >= {"max_error", "mean_error", "rmse", "synthetic", "baselines"}
    assert done.json["synthetic"].keys() == {"max_error", "mean_error"}
    for name in ("zero", "uniform", "independent", "gaussian"):
        assert done.json["baselines"][name].keys() == {"max_error", "mean_error"}
    assert done.err == ""
    loud = dualquery("evaluate", released, files[0], "--json")
    assert "NOT PRIVATE" in loud.err
    assert loud.json == done.json
    shown = dualquery("evaluate", released, files[0]).out
    assert all(text in shown for text in ("NOT PRIVATE", "zero", "independent", "synthetic"))


def test_evaluate_warns_of_another_number_of_rows(dualquery, released, files, caplog) -> None:
    same = dualquery("evaluate", released, files[0], "--json")
    assert same.json["rows_of_release"] == same.json["rows"] == 300
    assert caplog.messages == []
    files[0].write_text("".join(files[0].read_text().splitlines(keepends=True)[:100]))
    done = dualquery("evaluate", released, files[0], "--json").ok
    assert (done.json["rows"], done.json["rows_of_release"]) == (99, 300)
    assert "the release went by 300 rows, this table has 99" in caplog.text
