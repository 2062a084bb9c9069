"""How large the pieces of the source are: files, functions, comments, modules with one importer, repeated names.

    python benchmarks/house.py [SRC …]

Prints a table with a column for each source tree, so that two checkouts or two projects stand side by side.
"""

from __future__ import annotations

import argparse
import ast
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from statistics import median

Function = ast.FunctionDef | ast.AsyncFunctionDef


def main() -> None:
    """Measure every tree that the command line names; without one, the source of this checkout."""
    parser = argparse.ArgumentParser(description="Count files, functions, comments and importers of source trees.")
    parser.add_argument(
        "trees", nargs="*", type=Path, metavar="SRC", help="a folder of Python files; default: src/turnlog"
    )
    trees: list[Path] = parser.parse_args().trees or [Path(__file__).parents[1] / "src" / "turnlog"]
    for tree in trees:
        if next(tree.rglob("*.py"), None) is None:
            parser.error(f"{tree} has no Python files")
    columns = [measure(tree) for tree in trees]
    print(f"{'':34}" + "".join(f"{tree!s:>24}"[-24:] for tree in trees))
    for label in columns[0]:
        print(f"{label:34}" + "".join(f"{column[label]:>24}" for column in columns))


def measure(tree: Path) -> dict[str, str]:
    """The figures of one source tree, label -> what to print."""
    files = sorted(path for path in tree.rglob("*.py") if "__pycache__" not in path.parts)
    modules = {path: ast.parse(path.read_text()) for path in files}
    lengths = [len(path.read_text().splitlines()) for path in files]
    functions = [node for module in modules.values() for node in ast.walk(module) if isinstance(node, Function)]
    importers = importers_of(tree, modules)
    classes = Counter(
        node.name
        for module in modules.values()
        for node in module.body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    explaining = sum(map(comments_in, files)) + sum(map(texts_below_names, modules.values()))
    public = [node for module in modules.values() for node in public_definitions(module)]
    return {
        "files": str(len(files)),
        "lines": str(sum(lengths)),
        "file lines median / p90 / max": spread(lengths),
        "files under 60 lines": str(sum(length < 60 for length in lengths)),
        "functions": str(len(functions)),
        "function lines median / p90 / max": spread([length_of(node) for node in functions]),
        "comment lines": f"{100 * sum(map(comments_in, files)) / sum(lengths):.1f} %",
        "… and texts below names": f"{100 * explaining / sum(lengths):.1f} %",
        "public definitions with docstring": f"{100 * sum(map(has_docstring, public)) / len(public):.0f} %",
        "files with one importer, beside it": str(sum(is_single(path, found) for path, found in importers.items())),
        "public class names used twice": str(sum(count > 1 for count in classes.values())),
    }


def spread(values: list[int]) -> str:
    """Median, ninth decile and maximum."""
    ordered = sorted(values)
    return f"{median(ordered):.0f} / {ordered[int(len(ordered) * 0.9)]} / {ordered[-1]}"


def length_of(node: Function) -> int:
    """Lines of a function, its docstring left out: a long explanation makes no function long."""
    docstring = node.body[0] if ast.get_docstring(node) is not None else None
    inside = 0 if docstring is None else (docstring.end_lineno or docstring.lineno) - docstring.lineno + 1
    return (node.end_lineno or node.lineno) - node.lineno + 1 - inside


def comments_in(path: Path) -> int:
    """Lines that hold nothing but a comment."""
    with path.open("rb") as file:
        return sum(
            token.type == tokenize.COMMENT and token.line.lstrip().startswith("#")
            for token in tokenize.tokenize(file.readline)
        )


def texts_below_names(module: ast.Module) -> int:
    """Lines of the texts that explain the constant or the field above them, where comments would say the same."""
    count = 0
    for block in ast.walk(module):
        statements: list[ast.stmt] = getattr(block, "body", []) if isinstance(block, ast.Module | ast.ClassDef) else []
        for before, text in pairwise(statements):
            if isinstance(before, ast.Assign | ast.AnnAssign) and is_text(text):
                count += (text.end_lineno or text.lineno) - text.lineno + 1
    return count


def is_text(statement: ast.stmt) -> bool:
    """Whether a statement is nothing but a text."""
    value = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


def public_definitions(module: ast.Module) -> Iterator[Function | ast.ClassDef]:
    """Functions and classes of a module, and methods of its classes, whose names do not begin with an underscore."""
    for node in module.body:
        if isinstance(node, Function | ast.ClassDef) and not node.name.startswith("_"):
            yield node
            if isinstance(node, ast.ClassDef):
                yield from (
                    method for method in node.body if isinstance(method, Function) and not method.name.startswith("_")
                )


def has_docstring(node: Function | ast.ClassDef) -> bool:
    """Whether it is explained where it is defined."""
    return ast.get_docstring(node) is not None


def importers_of(tree: Path, modules: dict[Path, ast.Module]) -> dict[Path, set[Path]]:
    """File -> the files that import it or something out of it; packages' own files are left out."""
    names = {".".join((tree.name, *path.relative_to(tree).with_suffix("").parts)): path for path in modules}
    found: dict[Path, set[Path]] = defaultdict(set)
    for path, module in modules.items():
        for name in imported_names(module):
            target = names.get(name)
            if target is not None and target != path:
                found[target].add(path)
    return found


def imported_names(module: ast.Module) -> Iterator[str]:
    """Dotted names that a module imports: `from a import b` may be the module `a` or the module `a.b`."""
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def is_single(path: Path, importers: set[Path]) -> bool:
    """Whether exactly one file imports it, out of its own folder."""
    return len(importers) == 1 and next(iter(importers)).parent == path.parent


if __name__ == "__main__":
    main()
