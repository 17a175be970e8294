import json

import pytest

TABLES = "CREATE TABLE orders (id INT, customer STRING, amount DECIMAL(10,2));\nCREATE STREAM visits (page STRING);\n"


@pytest.fixture
def project(folder):
    def write(**files: str) -> None:
        (folder / "headwater.toml").write_text("", encoding="utf-8")
        for name, text in files.items():
            (folder / f"{name}.sql").write_text(text, encoding="utf-8")

    return write


def test_a_project_in_order(cli, project, folder):
    project(
        b_views="CREATE VIEW total AS SELECT sum(amount) AS s FROM orders;\nSELECT * FROM total;",
        a_tables=TABLES + "INSERT INTO orders VALUES (1, 'anna', 2);\nCOPY orders FROM 'orders.csv' CSV;",
    )
    done = cli("check")
    assert (done.code, done.err) == (0, "")
    assert done.out == (
        "a_tables.sql\n"
        "  ok       table orders\n"
        "  ok       stream visits\n"
        "  not run  INSERT INTO orders\n"
        "  not run  COPY orders\n"
        "b_views.sql\n"
        "  ok       view total\n"
        "  ok       SELECT * FROM total\n"
        "6 statements: 4 ok, 2 not run\n"
    )
    assert not (folder / "warehouse").exists()


def test_all_errors_are_reported_each_with_its_place(cli, project):
    project(
        a=TABLES + "CREATE VIEW one AS SELECT nope FROM orders;\nCREATE VIEW two AS\n  SELEKT 1;",
        b="CREATE VIEW three AS SELECT * FROM nowhere;\nCREATE VIEW four AS SELECT id FROM orders;",
    )
    done = cli("check")
    assert done.code == 1
    assert "a.sql:3:27\n3 | CREATE VIEW one AS SELECT nope FROM orders;\n" in done.err
    assert "a.sql:5:3\n5 |   SELEKT 1;" in done.err
    assert "b.sql:1:36\n1 | CREATE VIEW three AS SELECT * FROM nowhere;" in done.err
    assert done.err.count("error[") == 3
    assert "  ok       view four\n6 statements: 3 ok, 3 error\n" in done.out


def test_what_reads_a_broken_relation_is_skipped_not_blamed(cli, project):
    project(
        a=TABLES + "CREATE VIEW low AS SELECT nope FROM orders;\n"
        "CREATE VIEW high AS SELECT * FROM low;\nCREATE VIEW top AS SELECT * FROM high;\n"
        "CREATE TABLE bad (n NUMBERS);\nINSERT INTO bad VALUES (1);"
    )
    done = cli("check")
    assert done.code == 1
    assert done.err.count("error[") == 2
    assert "  skipped  view high  (needs low, which has an error)\n" in done.out
    assert "  skipped  view top  (needs high, which has an error)\n" in done.out
    assert "  skipped  INSERT INTO bad  (needs bad, which has an error)\n" in done.out


def test_tagged_streams_need_their_raw_ones(cli, project):
    project(
        a="REGISTER SOURCE raw (int a) FROM porthole;\nCREATE TAGGED STREAM low OVER raw KEY a;\n"
        "CREATE VIEW v AS SELECT a FROM low;\nREGISTER SOURCE r (int a);\nCREATE TAGGED STREAM t OVER r KEY a;"
    )
    done = cli("check")
    assert done.code == 1
    assert done.err.count("error[") == 1
    assert "  skipped  stream low  (needs raw, which has an error)\n" in done.out
    assert "  skipped  view v  (needs low, which has an error)\n" in done.out
    assert "  ok       stream r\n  ok       stream t\n" in done.out


def test_changes_of_relations_that_are_not_there(cli, project):
    project(a="INSERT INTO orders VALUES (1);")
    done = cli("check")
    assert done.code == 1
    assert "a.sql:1:13\n1 | INSERT INTO orders VALUES (1);\n  |             ^^^^^^\n" in done.err


def test_for_programs(cli, project):
    project(a=TABLES + "CREATE VIEW low AS SELECT nope FROM orders;\nCREATE VIEW high AS SELECT * FROM low;")
    done = cli("check", "--format", "json")
    assert (done.code, done.err) == (1, "")
    report = json.loads(done.out)
    assert report["ok"] is False
    table, stream, low, high = report["statements"]
    assert table == {"file": "a.sql", "line": 1, "statement": "table orders", "outcome": "ok"}
    assert stream["statement"] == "stream visits"
    assert (low["outcome"], low["error"]["line"], low["error"]["column"]) == ("error", 3, 27)
    assert (high["outcome"], high["needs"]) == ("skipped", "low")


def test_another_folder(cli, folder):
    (folder / "shop").mkdir()
    (folder / "shop" / "headwater.toml").write_text("", encoding="utf-8")
    assert cli("check", "shop").out == "no .sql files in shop\n"


def test_no_project(cli):
    done = cli("check")
    assert done.code == 1
    assert done.err.startswith("error[HW440]")
