import json

import pytest

import headwater as hw


@pytest.fixture
def shop(cli):
    cli(
        "sql",
        "shop",
        "-c",
        "CREATE TABLE orders (id INT, customer STRING);"
        "CREATE VIEW busy AS SELECT customer, count(*) AS n FROM orders GROUP BY customer;"
        "INSERT INTO orders VALUES (1, 'anna'), (2, 'anna')",
    )
    return cli


def test_explain_a_view(shop):
    done = shop("explain", "busy", "--warehouse", "shop")
    with hw.connect("shop") as database:
        assert (done.code, done.out) == (0, f"{database.explain('busy')}\n")


def test_explain_a_query_for_programs(shop):
    done = shop("explain", "SELECT count(*) AS n FROM orders", "--warehouse", "shop", "--format", "json")
    with hw.connect("shop") as database:
        expected = database.explain("SELECT count(*) AS n FROM orders").to_dict()
    assert json.loads(done.out) == json.loads(json.dumps(expected))


@pytest.mark.parametrize("form", ["text", "tree", "mermaid", "json"])
def test_explain_in_a_format(shop, form):
    done = shop("explain", "busy", "--warehouse", "shop", "--format", form)
    with hw.connect("shop") as database:
        assert (done.code, done.out) == (0, f"{database.explain('busy', form)}\n")


def test_explain_in_a_format_beside_the_process_that_has_it_open(shop, process):
    with hw.connect("shop") as database:
        done = process("explain", "busy", "--warehouse", "shop", "--format", "tree")
        assert done.out == f"{database.explain('busy', 'tree')}\n"


def test_explain_in_no_format(shop):
    done = shop("explain", "busy", "--warehouse", "shop", "--format", "xml")
    assert done.code == 2
    assert "'xml'" in done.err


def test_explain_of_nothing_known(shop):
    done = shop("explain", "nothing", "--warehouse", "shop")
    assert done.code == 1
    assert "nothing" in done.err


def test_status_for_people(shop):
    done = shop("status", "shop")
    assert done.code == 0
    lines = [" ".join(line.split()) for line in done.out.splitlines()]
    assert "warehouse shop" in lines
    assert "epoch 1" in lines
    assert "NULL" not in done.out
    assert any(line.startswith("orders | table | 2") for line in lines)
    assert any(line.startswith("busy | view | 1") and "current" in line for line in lines)


def test_status_for_programs(shop):
    with hw.connect("shop") as database:
        expected = database.status()
    assert json.loads(shop("status", "shop", "--format", "json").out) == expected


def test_status_of_an_empty_warehouse(cli):
    cli("sql", "empty", "-c", "SELECT 1 AS one")
    assert cli("status", "empty").out.endswith("no relations\n")


def test_status_beside_the_process_that_has_it_open(shop, process):
    with hw.connect("shop") as database:
        done = process("status", "shop", "--format", "json")
        assert json.loads(done.out) == database.status()


@pytest.mark.parametrize("args", [("status", "nowhere"), ("explain", "busy", "--warehouse", "nowhere"), ("status",)])
def test_a_question_about_no_warehouse_does_not_make_one(cli, folder, args):
    done = cli(*args)
    assert done.code == 1
    assert done.err.startswith("error[HW460]: there is no warehouse at ")
    assert list(folder.iterdir()) == []
