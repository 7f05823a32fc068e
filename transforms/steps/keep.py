"""keep: remove all fields but these."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import Field

from transforms.steps.base import Example, Made, Step
from transforms.steps.paths import FieldPath, parts

if TYPE_CHECKING:
    from transforms.code import Code


def project(record: dict[str, Any], wanted: dict[str, Any]) -> dict[str, Any]:
    """The fields that `wanted` names; a name may have a dict of names inside, None stands for all of it."""
    result = {}
    for name, value in record.items():
        if name in wanted:
            inside = wanted[name]
            if inside is None:
                result[name] = value
            elif type(value) is dict:
                result[name] = project(value, inside)
    return result


class KeepStep(Step):
    summary: ClassVar = "Keeps only these fields, in the order of the record; those that it does not have are ignored."
    example: ClassVar = Example(
        yaml="keep: [customer.id, id]",
        inputs=[{"id": 1, "pad": "x", "customer": {"id": 7, "email": "a@example.org"}}, {"id": 2}],
        outputs=[Made({"id": 1, "customer": {"id": 7}}), Made({"id": 2})],
    )

    keep: Annotated[list[FieldPath], Field(min_length=1)]

    def emit(self, code: Code) -> None:
        code.need_object("keep")
        paths = [parts(path) for path in self.keep]
        if all(len(names) == 1 for names in paths):
            wanted = ", ".join(ascii(name) for (name,) in dict.fromkeys(paths))
            code.write(f"r = {{name: value for name, value in r.items() if name in {{{wanted}}}}}")
        else:
            code.write(f"r = {code.use(project)}(r, {_tree(paths)!a})")
        code.change()


def _tree(paths: list[tuple[str, ...]]) -> dict[str, Any]:
    """`a.b`, `a.c`, `d` -> {"a": {"b": None, "c": None}, "d": None}; the wider one of `a` and `a.b` counts."""
    tree: dict[str, Any] = {}
    for names in sorted(paths, key=len, reverse=True):
        level = tree
        for name in names[:-1]:
            level = level.setdefault(name, {})
        level[names[-1]] = None
    return tree
