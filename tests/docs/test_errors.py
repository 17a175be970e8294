"""`docs/errors.md` explains every code, a code is always of one kind, and the page's examples fail as it says."""

from __future__ import annotations

import ast
import decimal
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

import headwater as hw

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "headwater"
PAGE = ROOT / "docs" / "errors.md"
CODE = re.compile(r"HW\d{3}")

#: What an error is made with, by the last part of its name, and the kind of error it makes. `only` is
#: `Place.only`, which refuses what nobody reads; a `RefusedError` becomes a `UserError` where the row is known.
MAKERS: dict[str, type[hw.HeadwaterError]] = {
    "UserError": hw.UserError,
    "EvaluationError": hw.UserError,
    "RefusedError": hw.UserError,
    "mistake": hw.UserError,
    "NotSupported": hw.NotSupported,
    "unsupported": hw.NotSupported,
    "only": hw.NotSupported,
    "InternalError": hw.InternalError,
}


@dataclass(frozen=True)
class Use:
    """A code in the source.

    Attributes:
        code: such as `HW101`.
        place: the file and the line.
        kind: what it is raised as; None where the code only stands in a table or a constant.
        message: the first words of the message, as far as they are written beside it.
    """

    code: str
    place: str
    kind: type[hw.HeadwaterError] | None = None
    message: str = ""


# -- the codes in the source -----------------------------------------------------------------------------------------


@cache
def modules() -> dict[Path, ast.Module]:
    """All modules but the one that defines what an error is, whose codes are examples."""
    files = (file for file in sorted(SOURCE.rglob("*.py")) if file != SOURCE / "errors.py")
    return {file: ast.parse(file.read_text("utf-8")) for file in files}


@cache
def constants() -> dict[str, set[str]]:
    """The codes that go by a name, such as `WRONG_TYPE = "HW324"`; two modules may use one name."""
    found: dict[str, set[str]] = defaultdict(set)
    for tree in modules().values():
        for node in tree.body:
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and is_code(node.value):
                for target in node.targets:
                    if isinstance(target, ast.Name):
                        found[target.id].add(str(node.value.value))
    return found


def is_code(node: ast.AST) -> bool:
    """Whether a node is a code as a string; one inside a docstring or a longer text is not."""
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and CODE.fullmatch(node.value) is not None


def codes_of(node: ast.expr) -> set[str]:
    """The codes that an argument may be: a string, or the name of a constant."""
    if is_code(node):
        assert isinstance(node, ast.Constant)
        return {str(node.value)}
    name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
    return constants().get(name, set())


def uses_in(file: Path, tree: ast.Module) -> Iterator[Use]:
    where = file.relative_to(ROOT).as_posix()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield from uses_in_call(node, where, maker_of(node))
        elif isinstance(node, ast.ClassDef):  # class WarehouseInUse(UserError): super().__init__("HW402", ...)
            bases = [base.id for base in node.bases if isinstance(base, ast.Name) and base.id in MAKERS]
            for inner in ast.walk(node) if bases else ():
                if isinstance(inner, ast.Call) and maker_of(inner) == "__init__":
                    yield from uses_in_call(inner, where, bases[0])
        elif isinstance(node, ast.FunctionDef) and node.name in MAKERS:  # def only(..., code: str = "HW201")
            for default in node.args.defaults:
                for code in codes_of(default):
                    yield Use(code, f"{where}:{default.lineno}", MAKERS[node.name])
        elif is_code(node):
            assert isinstance(node, ast.Constant)
            yield Use(str(node.value), f"{where}:{node.lineno}")


def maker_of(call: ast.Call) -> str:
    """The last part of the name of what is called."""
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def uses_in_call(call: ast.Call, where: str, maker: str) -> Iterator[Use]:
    if maker in MAKERS:
        given = [*call.args, *(keyword.value for keyword in call.keywords)]
        for position, argument in enumerate(given):
            message = ast.unparse(given[position + 1]) if position + 1 < len(given) else ""
            for code in codes_of(argument):
                yield Use(code, f"{where}:{argument.lineno}", MAKERS[maker], message)


@cache
def uses() -> dict[str, list[Use]]:
    """Every code of the source with all its uses."""
    found: dict[str, list[Use]] = defaultdict(list)
    for file, tree in modules().items():
        for use in uses_in(file, tree):
            found[use.code].append(use)
    return dict(found)


# -- the paragraphs of the page --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Paragraph:
    """A code's part of the page.

    Attributes:
        code: from its heading.
        group: the heading above it, such as `HW1xx: names and types`.
        text: what stands below the heading.
    """

    code: str
    group: str
    text: str

    @property
    def examples(self) -> list[tuple[str, str]]:
        """Language and text of its examples."""
        return re.findall(r"^```(sql|py)\n(.*?)^```$", self.text, re.MULTILINE | re.DOTALL)


def read_page() -> list[Paragraph]:
    found: list[Paragraph] = []
    group = ""
    for part in re.split(r"^(?=##)", PAGE.read_text("utf-8"), flags=re.MULTILINE):
        title, _, text = part.partition("\n")
        if title.startswith("## "):
            group = title.removeprefix("## ").strip()
        elif title.startswith("### "):
            found.append(Paragraph(title.removeprefix("### ").strip(), group, text))
    return found


PARAGRAPHS = read_page()
EXAMPLES = [
    pytest.param(paragraph.code, language, text, id=f"{paragraph.code}-{language}")
    for paragraph in PARAGRAPHS
    for language, text in paragraph.examples
]
#: The relations that the examples use: the first block of SQL on the page.
RELATIONS = re.search(r"^```sql\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)


def test_every_code_has_a_paragraph() -> None:
    missing = sorted(set(uses()) - {paragraph.code for paragraph in PARAGRAPHS})
    told = [
        f"### {code}\n\n(what it means, and what to do)\n\nunder '## {code[:3]}xx' of docs/errors.md; it is raised at\n"
        + "\n".join(f"  {place}  {message}" for place, message in sorted(places(code).items()))
        for code in missing
    ]
    assert not missing, "add\n\n" + "\n\n".join(told)


def places(code: str) -> dict[str, str]:
    """Where a code is used, with the message if it stands there."""
    found: dict[str, str] = {}
    for use in uses()[code]:
        found[use.place] = use.message or found.get(use.place, "")
    return found


def test_every_paragraph_has_a_code() -> None:
    unknown = [paragraph.code for paragraph in PARAGRAPHS if paragraph.code not in uses()]
    assert not unknown, (
        f"nothing in src/headwater raises {', '.join(unknown)}: remove these paragraphs of docs/errors.md"
    )


def test_paragraphs_stand_in_order_under_their_hundreds() -> None:
    codes = [paragraph.code for paragraph in PARAGRAPHS]
    assert codes == sorted(set(codes))
    for paragraph in PARAGRAPHS:
        assert paragraph.group.startswith(f"{paragraph.code[:3]}xx:"), f"{paragraph.code} is under {paragraph.group!r}"
        prose = re.sub(r"^```.*?^```$", "", paragraph.text, flags=re.MULTILINE | re.DOTALL)
        assert len(prose.split()) >= 5, f"{paragraph.code} has no explanation"


def test_codes_named_in_docstrings_and_comments_exist() -> None:
    for file in modules():
        named = set(CODE.findall(file.read_text("utf-8")))
        assert named <= set(uses()), (
            f"{file.relative_to(ROOT)} names {sorted(named - set(uses()))}, which nothing raises"
        )


# -- kinds -----------------------------------------------------------------------------------------------------------


def kind_of(code: str) -> type[hw.HeadwaterError]:
    """The kind that the hundreds of a code promise."""
    return {"HW2": hw.NotSupported, "HW9": hw.InternalError}.get(code[:3], hw.UserError)


def test_every_code_is_of_the_kind_of_its_hundreds() -> None:
    wrong = [
        f"{use.place} raises {code} as {use.kind.__name__}, and its number says {kind_of(code).__name__}"
        for code, found in sorted(uses().items())
        for use in found
        if use.kind is not None and use.kind is not kind_of(code)
    ]
    assert not wrong, "\n".join(wrong)


def test_the_kind_of_every_code_is_found() -> None:
    """Otherwise the test above would pass by seeing nothing."""
    unseen = [f"{code} ({found[0].place})" for code, found in sorted(uses().items()) if not any(u.kind for u in found)]
    assert not unseen, f"no call that makes these errors was recognised; extend MAKERS in {__file__}: {unseen}"


# -- examples --------------------------------------------------------------------------------------------------------


Warehouse = hw.Database | hw.RemoteDatabase


@pytest.fixture(scope="module")
def kept() -> Iterator[list[Warehouse]]:
    """The warehouse that the next example can use, if there is one."""
    found: list[Warehouse] = []
    yield found
    for warehouse in found:
        warehouse.close()


@pytest.fixture
def db(kept: list[Warehouse]) -> Iterator[Warehouse]:
    """A warehouse with the page's relations: the last example's, if that has left it as it was."""
    if not kept:
        kept.append(hw.connect())
        assert RELATIONS is not None
        kept[0].execute(RELATIONS[1])
    before = state(kept[0])
    yield kept[0]
    if state(kept[0]) != before:
        kept.pop().close()


def state(warehouse: Warehouse) -> object:
    try:
        return warehouse.relations(), warehouse.status()["epoch"]
    except hw.HeadwaterError as error:
        return error.code


def test_there_are_examples_of_most_codes() -> None:
    shown = {paragraph.code for paragraph in PARAGRAPHS if paragraph.examples}
    assert len(shown) >= 75
    for hundreds in "01235":
        assert any(code.startswith(f"HW{hundreds}") for code in shown)


@pytest.mark.parametrize(("code", "language", "text"), EXAMPLES)
def test_examples_fail_with_their_code(
    code: str, language: str, text: str, db: Warehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"db": db, "hw": hw, "folder": tmp_path, "decimal": decimal}
    *before, last = ast.parse(text).body if language == "py" else text.strip().split(";\n")
    for step in before:
        run(step, names)
    with pytest.raises(hw.HeadwaterError) as raised:
        run(last, names)
    error = raised.value
    assert error.code == code, error
    assert isinstance(error, kind_of(code))
    assert error.to_dict()["kind"] == kind_of(code).kind
    if language == "sql" and code < "HW300":
        assert error.span is not None, f"{code} does not say where in the statement"


def run(step: ast.stmt | str, names: dict[str, object]) -> None:
    """Run a statement of Python or SQL."""
    if isinstance(step, str):
        names["db"].execute(step)  # type: ignore[attr-defined]
    else:
        exec(compile(ast.Module([step], []), "docs/errors.md", "exec"), names)
