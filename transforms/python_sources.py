"""The source of a module, and of what it imports from its own package: what the outputs of a step `python` depend on."""

from __future__ import annotations

import ast
import hashlib
import importlib.util
from importlib.machinery import PathFinder
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from importlib.machinery import ModuleSpec


def digest(module: str) -> str:
    """SHA-256 of the sources, by name, of the module and of all that it imports from the same top-level package, directly or not.

    Left out are the standard library and what is installed from elsewhere; a package around a module that no `import` asks for; and
    what is imported by a name that is made while the program runs.
    """
    top = module.partition(".")[0]
    sources: dict[str, str] = {}
    waiting = [module]
    while waiting:
        name = waiting.pop()
        if name in sources or name.partition(".")[0] != top:
            continue
        found = _source(name)
        if found is not None:
            sources[name], is_package = found
            waiting += _imports(sources[name], name if is_package else name.rpartition(".")[0])
    text = "".join(f"{name}\0{len(source)}\0{source}" for name, source in sorted(sources.items()))
    return hashlib.sha256(text.encode()).hexdigest()


def _source(module: str) -> tuple[str, bool] | None:
    """(source, whether it is a package); "" for a module without one (built in, compiled), None for what is no module."""
    try:
        spec = _spec(module)
        if spec is None:
            return None
        get = getattr(spec.loader, "get_source", None)
        return (get(module) if get else None) or "", spec.submodule_search_locations is not None
    except (ImportError, ValueError, OSError):  # no module, one without a place, one that cannot be read
        return None


def _spec(module: str) -> ModuleSpec | None:
    """Not `importlib.util.find_spec`, which imports, and so runs, the packages around the module."""
    package = module.rpartition(".")[0]
    if not package:
        return importlib.util.find_spec(module)
    around = _spec(package)
    path = None if around is None else around.submodule_search_locations
    return None if path is None else PathFinder.find_spec(module, path)


def _imports(source: str, package: str) -> Iterator[str]:
    """Modules, or names in modules, that a source asks for at any place: also inside of functions."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return  # it cannot be imported either
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            around = package.split(".")
            base = around[: len(around) - node.level + 1] if node.level else []
            home = ".".join([*base, *([node.module] if node.module else [])])
            yield home
            yield from (f"{home}.{alias.name}" for alias in node.names)
