"""Reads snippets as JSON and prints their errors: invalid syntax, and names that package mobula does not have."""

import ast
import json
import pathlib
import sys

package = pathlib.Path(sys.argv[1])


def public() -> set[str]:
    for node in ast.parse((package / "__init__.py").read_text()).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
            names = set(ast.literal_eval(node.value))
            return names | {p.stem for p in package.iterdir() if not p.name.startswith("_")} | {"__version__"}
    raise SystemExit(f"{package} has no __all__")


def aliases(tree: ast.AST) -> set[str]:
    """The names under which a snippet imports the package."""
    out = {"mobula"}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            out |= {a.asname for a in node.names if a.name == "mobula" and a.asname}
    return out


have = public()
for s in json.load(sys.stdin):
    try:
        tree = ast.parse("\n" * (s["line"] - 1) + s["code"], s["page"])
    except SyntaxError as e:
        print(f"{s['page']}:{e.lineno}: {e.msg}")
        continue
    names = aliases(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in names and node.attr not in have:
            print(f"{s['page']}:{node.lineno}: package mobula has no {node.attr}")
