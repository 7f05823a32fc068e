"""headers: set and remove headers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self, TypeAlias

from pydantic import AfterValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from transforms.steps.base import AnyValue, Example, Given, Kind, Made, Model, Step
from transforms.steps.key import as_bytes

if TYPE_CHECKING:
    from transforms.code import Code
    from transforms.records import HeaderList


def with_headers(
    headers: HeaderList | None, removed: tuple[str, ...], values: tuple[tuple[str, Any], ...]
) -> HeaderList:
    """The headers without those names, and the new ones behind them."""
    kept = [header for header in headers or () if header[0] not in removed]
    return [*kept, *((name, as_bytes(value)) for name, value in values)]


def _check(name: str) -> str:
    if name.startswith("reckon."):
        raise PydanticCustomError(
            "header", "headers that begin with 'reckon.' are the worker's own, expected another name"
        )
    return name


HeaderName: TypeAlias = Annotated[str, Kind("header"), Field(min_length=1), AfterValidator(_check)]


class HeaderChanges(Model):
    set: dict[HeaderName, AnyValue] = Field(default_factory=dict)
    """Expressions; text and bytes as they are, null for a header without value, everything else as JSON."""
    remove: list[HeaderName] = Field(default_factory=list)

    @model_validator(mode="after")
    def _something(self) -> Self:
        if not self.set and not self.remove:
            raise PydanticCustomError("headers", "nothing to do, expected one of the keys set and remove, or both")
        return self


class HeadersStep(Step):
    summary: ClassVar = (
        "Sets headers to the values of expressions, which all see the headers before the step, and removes headers."
    )
    example: ClassVar = Example(
        yaml="headers: {set: {type: 'kind + \".v1\"', origin: topic}, remove: [debug]}",
        inputs=[Given({"kind": "order"}, headers={"debug": "1", "trace": "t"})],
        outputs=[Made({"kind": "order"}, headers={"trace": "t", "type": "order.v1", "origin": "in"})],
    )
    notes: ClassVar = "A header that is set replaces all of its name, and stands last."

    headers: HeaderChanges

    def emit(self, code: Code) -> None:
        changes = self.headers
        code.evaluate([(f"v{number}", code.compile(text, "any")) for number, text in enumerate(changes.set.values())])
        removed = tuple(dict.fromkeys([*changes.remove, *changes.set]))
        values = "".join(f"({name!a}, v{number}), " for number, name in enumerate(changes.set))
        code.set_headers(f"{code.use(with_headers)}({code.headers}, {removed!a}, ({values}))")
