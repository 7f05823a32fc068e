"""route_all: choose all topics of a record whose conditions are true."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import Field

from transforms.steps.base import Example, Made, Step
from transforms.steps.route import Route, default_of

if TYPE_CHECKING:
    from transforms.code import Code


class RouteAllStep(Step):
    summary: ClassVar = (
        "Sends a record to the topics of all conditions that are true, in their order; where none is, to the "
        "default or the sink."
    )
    example: ClassVar = Example(
        yaml='route_all: [{when: amount > 1000.0, to: large}, {when: country != "DE", to: abroad}]',
        inputs=[{"amount": 2000.5, "country": "FR"}, {"amount": 1, "country": "FR"}, {"amount": 1, "country": "DE"}],
        outputs=[
            Made({"amount": 2000.5, "country": "FR"}, "large"),
            Made({"amount": 2000.5, "country": "FR"}, "abroad"),
            Made({"amount": 1, "country": "FR"}, "abroad"),
            Made({"amount": 1, "country": "DE"}),
        ],
    )
    notes: ClassVar = "The last step, and otherwise as `route`; a topic stands in it once."

    route_all: Annotated[list[Route], Field(min_length=1)]

    @property
    def routes(self) -> list[Route]:
        return self.route_all

    @property
    def default(self) -> str | None:
        return default_of(self.route_all)

    def emit(self, code: Code) -> None:
        """Puts the topics into the variable `topics`, a list that is never empty."""
        conditional = [route for route in self.route_all if route.when is not None]
        code.evaluate(
            [(f"v{number}", code.compile(route.when or "", "bool")) for number, route in enumerate(conditional)]
        )
        taken = ", ".join(f"({route.to!a}, v{number})" for number, route in enumerate(conditional))
        default = repr(self.default) if self.default is not None else "SINK"
        code.write(f"topics = [name for name, taken in [{taken}] if taken] or [{default}]")
