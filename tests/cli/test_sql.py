"""`headwater sql` without a terminal."""

import fcntl
import json
import os
import subprocess
import threading

import pytest

import headwater as hw

from .conftest import command, environment

SETUP = """
CREATE TABLE orders (id INT, customer STRING, amount DECIMAL(10,2));
CREATE VIEW revenue AS SELECT customer, sum(amount) AS total FROM orders GROUP BY customer;
INSERT INTO orders VALUES (1, 'anna', 10.50), (2, 'bert', NULL), (3, 'anna', 0.25);
"""
REVENUE = "SELECT * FROM revenue ORDER BY customer"


@pytest.fixture
def shop(cli, folder):
    """The default warehouse with some orders in it."""
    (folder / "setup.sql").write_text(SETUP, encoding="utf-8")
    assert cli("sql", "-f", "setup.sql").code == 0
    return cli


def test_statements_tell_what_they_did(cli, folder):
    (folder / "setup.sql").write_text(SETUP, encoding="utf-8")
    done = cli("sql", "-f", "setup.sql")
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines() == [
        "created table orders",
        "created view revenue (0 rows)",
        "inserted 3 rows in orders",
    ]


def test_a_table_for_people(shop):
    assert shop("sql", "-c", REVENUE).out == (
        "customer | total\n"
        "---------+------\n"
        "anna     | 10.75\n"
        "bert     |  NULL\n"
        "(2 rows)\n"
    )  # fmt: skip


def test_csv(shop):
    assert shop("sql", "--format", "csv", "-c", REVENUE).out == "customer,total\nanna,10.75\nbert,\n"


def test_json(shop):
    assert json.loads(shop("sql", "--format", "json", "-c", REVENUE).out) == [
        {"customer": "anna", "total": "10.75"},
        {"customer": "bert", "total": None},
    ]


def test_json_lines(shop):
    lines = shop("sql", "--format", "jsonl", "-c", REVENUE).out.splitlines()
    assert [json.loads(line)["customer"] for line in lines] == ["anna", "bert"]


def test_statements_without_rows_leave_no_trace_for_programs(shop):
    done = shop("sql", "--format", "json", "-c", "INSERT INTO orders VALUES (9, 'z', 1)", "-c", "SELECT 1 AS one")
    assert json.loads(done.out) == [{"one": 1}]


def test_explain_in_json_is_a_row_with_its_text(shop):
    [row] = json.loads(shop("sql", "--format", "json", "-c", "EXPLAIN revenue").out)
    with hw.connect("warehouse") as database:
        assert row == {"text": str(database.explain("revenue"))}


def test_several_results_in_csv_are_parted_by_an_empty_line(cli):
    done = cli("sql", ":memory:", "--format", "csv", "-c", "SELECT 1 AS a; SELECT 2 AS b")
    assert done.out == "a\n1\n\nb\n2\n"


def test_commands_and_files_run_in_the_order_given(cli, folder):
    (folder / "two.sql").write_text("SELECT 2 AS n", encoding="utf-8")
    done = cli("sql", ":memory:", "--format", "jsonl", "-c", "SELECT 1 AS n", "-f", "two.sql", "-c", "SELECT 3 AS n")
    assert done.out == '{"n": 1}\n{"n": 2}\n{"n": 3}\n'


def test_the_standard_input(process):
    done = process("sql", ":memory:", "--format", "jsonl", stdin="SELECT 1 AS n;\nSELECT 'ü' AS t")
    assert (done.code, done.out, done.err) == (0, '{"n": 1}\n{"t": "ü"}\n', "")


def test_the_standard_input_as_a_file(process):
    done = process("sql", ":memory:", "--format", "jsonl", "-c", "SELECT 0 AS n", "-f", "-", stdin="SELECT 1 AS n")
    assert done.out == '{"n": 0}\n{"n": 1}\n'


def test_the_first_error_ends_the_run_and_what_was_done_stays(cli, folder):
    text = "CREATE TABLE t (n INT);\nINSERT INTO t VALUES (1);\n\nINSERT INTO t VALUES ('x', 2);\nDROP TABLE t;\n"
    (folder / "run.sql").write_text(text, encoding="utf-8")
    done = cli("sql", "-f", "run.sql")
    assert done.code == 1
    assert done.out.splitlines() == ["created table t", "inserted 1 row in t"]
    assert "--> run.sql:4:" in done.err
    assert "4 | INSERT INTO t VALUES ('x', 2);" in done.err
    assert cli("sql", "--format", "jsonl", "-c", "SELECT * FROM t").out == '{"n": 1}\n'


def test_output_goes_to_a_file_uncut(shop, folder):
    shop("sql", "-c", f"INSERT INTO orders VALUES (4, '{'x' * 300}', 1)")
    done = shop("sql", "--output", "out.txt", "-c", "SELECT customer FROM orders WHERE id = 4")
    assert done.out == ""
    assert "x" * 300 in (folder / "out.txt").read_text(encoding="utf-8")


def test_output_that_cannot_be_written(cli):
    done = cli("sql", ":memory:", "--output", "no/where.txt", "-c", "SELECT 1 AS one")
    assert done.code == 1
    assert done.err.startswith("error[HW462]: no/where.txt cannot be written")


def test_a_missing_file_is_found_out_before_anything_runs(cli, folder):
    done = cli("sql", "-c", "CREATE TABLE t (n INT)", "-f", "missing.sql")
    assert done.code == 1
    assert done.err.startswith("error[HW461]: missing.sql cannot be read")
    assert not (folder / "warehouse").exists()


def test_a_file_that_is_no_text(cli, folder):
    (folder / "latin.sql").write_bytes("SELECT 'é'".encode("latin-1"))
    done = cli("sql", "-f", "latin.sql")
    assert done.code == 1
    assert "HW461" in done.err
    assert "UTF-8" in done.err


def test_windows_line_ends_and_byte_order_mark(cli, folder):
    (folder / "windows.sql").write_bytes(b"\xef\xbb\xbfSELECT 1 AS one;\r\nSELECT nope\r\n")
    done = cli("sql", ":memory:", "-f", "windows.sql")
    assert "windows.sql:2:8\n2 | SELECT nope\n" in done.err


def test_the_project_of_the_current_folder(cli, folder):
    (folder / "headwater.toml").write_text('warehouse = "data"', encoding="utf-8")
    cli("sql", "-c", "CREATE TABLE t (n INT)")
    assert (folder / "data" / "warehouse.duckdb").exists()


def test_a_project_by_its_folder(cli, folder):
    (folder / "shop").mkdir()
    (folder / "shop" / "headwater.toml").write_text('warehouse = "data"', encoding="utf-8")
    cli("sql", "shop", "-c", "CREATE TABLE t (n INT)")
    assert (folder / "shop" / "data" / "warehouse.duckdb").exists()


def test_memory_leaves_nothing_behind(cli, folder):
    assert cli("sql", ":memory:", "-c", "CREATE TABLE t (n INT); INSERT INTO t VALUES (1)").code == 0
    assert list(folder.iterdir()) == []


def test_a_warehouse_that_another_process_has_open(shop, process):
    with hw.connect("warehouse") as database:
        done = process("sql", "-c", "INSERT INTO orders VALUES (7, 'cleo', 3)", "-c", REVENUE, "--format", "csv")
        assert (done.code, done.err) == (0, "")
        assert done.out == "customer,total\nanna,10.75\nbert,\ncleo,3.00\n"
        assert database.query("SELECT id FROM orders WHERE customer = 'cleo'").to_pylist() == [{"id": 7}]


def test_an_error_of_that_process_reads_as_one_of_ours(shop, process):
    alone = process("sql", "-c", "SELECT 1 AS one;\nSELECT nope FROM orders")
    with hw.connect("warehouse"):
        beside = process("sql", "-c", "SELECT 1 AS one;\nSELECT nope FROM orders")
    assert (beside.code, beside.out, beside.err) == (alone.code, alone.out, alone.err)


def test_a_process_that_is_just_closing_the_warehouse_is_waited_for(shop, folder):
    lock = os.open(folder / "warehouse" / "lock", os.O_RDWR)
    fcntl.flock(lock, fcntl.LOCK_EX)
    threading.Timer(1.5, os.close, [lock]).start()
    done = shop("sql", "--format", "jsonl", "-c", "SELECT 1 AS one")
    assert (done.code, done.out, done.err) == (0, '{"one": 1}\n', "")


def test_two_commands_at_once_on_one_warehouse(shop, folder):
    running = [
        subprocess.Popen(
            command("sql", "-c", f"INSERT INTO orders VALUES ({100 + i}, 'dora', 1)"),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=folder,
            env=environment(),
        )
        for i in range(3)
    ]
    for one in running:
        _, err = one.communicate(timeout=60)
        assert (one.returncode, err) == (0, b"")
    done = shop("sql", "--format", "jsonl", "-c", "SELECT total FROM revenue WHERE customer = 'dora'")
    assert done.out == '{"total": "3.00"}\n'
