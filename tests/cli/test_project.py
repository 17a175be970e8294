from pathlib import Path

import pytest

from headwater.errors import UserError
from headwater.project import load_project


def project(folder: Path, toml: str, *files: str) -> Path:
    (folder / "headwater.toml").write_text(toml, encoding="utf-8")
    for name in files:
        (folder / name).write_text("", encoding="utf-8")
    return folder


def refusal(folder: Path, toml: str) -> UserError:
    with pytest.raises(UserError) as caught:
        load_project(project(folder, toml))
    return caught.value


def test_a_project_is_its_settings_and_its_files_in_order_of_name(tmp_path):
    folder = project(
        tmp_path,
        'warehouse = "data/shop"\nplacement = "driver"\nmemory = "2GB"\n[spark]\n"spark.sql.shuffle.partitions" = 4\n',
        "20_views.sql",
        "10_tables.sql",
        "notes.txt",
    )
    loaded = load_project(folder)
    assert loaded.warehouse == folder / "data/shop"
    assert loaded.placement == "driver"
    assert loaded.memory == "2GB"
    assert [file.name for file in loaded.files] == ["10_tables.sql", "20_views.sql"]
    assert loaded.spark == {"spark.sql.shuffle.partitions": 4}


def test_an_empty_file_means_the_defaults(tmp_path):
    loaded = load_project(project(tmp_path, ""))
    assert (loaded.warehouse, loaded.placement, loaded.spark) == (tmp_path / "warehouse", "inline", {})
    assert loaded.memory is None


def test_an_absolute_warehouse_stays_absolute(tmp_path):
    assert load_project(project(tmp_path, 'warehouse = "/srv/shop"')).warehouse == Path("/srv/shop")


def test_no_project(tmp_path):
    with pytest.raises(UserError, match="is no project") as caught:
        load_project(tmp_path)
    assert caught.value.code == "HW440"


def test_an_unknown_key_is_shown_on_its_line(tmp_path):
    error = refusal(tmp_path, '# where it is kept\nwarehous = "w"\n')
    assert error.code == "HW442"
    assert error.hint == "did you mean warehouse?"
    assert 'headwater.toml:2:1\n2 | warehous = "w"\n  | ^^^^^^^^' in str(error)


def test_an_unknown_table_is_shown_too(tmp_path):
    assert "headwater.toml:1:2\n1 | [kafka]" in str(refusal(tmp_path, "[kafka]\nservers = 1\n"))


@pytest.mark.parametrize(
    ("toml", "line"),
    [
        ('placement = "moon"', 1),
        ("\nwarehouse = 3", 2),
        ('warehouse = ""', 1),
        ("spark = 1", 1),
        ('memory = "much"', 1),
        ("memory = 8", 1),
    ],
)
def test_a_value_that_does_not_fit(tmp_path, toml, line):
    error = refusal(tmp_path, toml)
    assert error.code == "HW443"
    assert error.to_dict()["line"] == line


@pytest.mark.parametrize(("toml", "line", "column"), [('a = "x"\nwarehouse = \n', 2, 13), ('warehouse = "w', 1, 15)])
def test_broken_toml_is_shown_where_it_breaks(tmp_path, toml, line, column):
    error = refusal(tmp_path, toml)
    assert error.code == "HW441"
    assert (error.to_dict()["line"], error.to_dict()["column"]) == (line, column)
