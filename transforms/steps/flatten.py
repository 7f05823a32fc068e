"""flatten: objects inside of the record become fields of the record."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import Field

from transforms.errors import FlattenError
from transforms.steps.base import Example, Made, Model, Step

if TYPE_CHECKING:
    from collections.abc import Iterator

    from transforms.code import Code


def flatten(record: dict[str, Any], fields: tuple[str, ...] | None, separator: str, depth: int) -> dict[str, Any]:
    """The record with its objects flattened. Raises `FlattenError` where two fields would get one name."""
    result: dict[str, Any] = {}
    for name, value in record.items():
        flat = type(value) is dict and (fields is None or name in fields)
        for new, inner in _leaves(value, name, separator, depth) if flat else ((name, value),):
            if new in result:
                raise FlattenError(
                    f'two fields would get the name "{new}", expected one: rename or drop the other before'
                )
            result[new] = inner
    return result


def _leaves(value: dict[str, Any], name: str, separator: str, depth: int) -> Iterator[tuple[str, Any]]:
    for key, inner in value.items():
        path = f"{name}{separator}{key}"
        if type(inner) is dict and depth > 1:
            yield from _leaves(inner, path, separator, depth - 1)
        else:
            yield path, inner


class Flattening(Model):
    fields_: Annotated[list[Annotated[str, Field(min_length=1)]] | None, Field(min_length=1, alias="fields")] = None
    """Names of top-level fields; without it, all that hold objects."""
    separator: str = "_"
    depth: Annotated[int, Field(ge=1, le=100, strict=False)] = 100
    """Levels of objects; what lies deeper stays an object."""


class FlattenStep(Step):
    summary: ClassVar = (
        "Puts the fields of inner objects into the record, at the place of the object, under names joined from "
        "all on the way."
    )
    example: ClassVar = Example(
        yaml="flatten: {fields: [sensor]}",
        inputs=[{"sensor": {"id": 7, "place": {"lat": 52.5, "lon": 13.4}}, "v": {"x": 1}}, {"sensor": 1, "v": 2}],
        outputs=[
            Made({"sensor_id": 7, "sensor_place_lat": 52.5, "sensor_place_lon": 13.4, "v": {"x": 1}}),
            Made({"sensor": 1, "v": 2}),
        ],
    )
    notes: ClassVar = (
        "What is no object stays as it is, lists too; an empty object vanishes. Two fields of one name are an "
        "error. `flatten: {}` does all there is. To take one object as the whole record, without joined names: "
        "`value: after`."
    )

    flatten: Flattening

    def emit(self, code: Code) -> None:
        code.need_object("flatten")
        of = self.flatten
        fields = tuple(of.fields_) if of.fields_ is not None else None
        code.write(f"r = {code.use(flatten)}(r, {fields!a}, {of.separator!a}, {of.depth})")
        code.change()
