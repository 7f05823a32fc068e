"""route_all: choose all topics of a record whose conditions are true."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import Field

from transforms.steps.base import Example, Made, Step
from transforms.steps.route import Route  # noqa: TC001 - pydantic needs it at run time

if TYPE_CHECKING:
    from transforms.code import Code


class RouteAllStep(Step):
    summary: ClassVar = (
        "Sends a record to the topics of all conditions that are true, in their order; where none is, to the sink."
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
    notes: ClassVar = (
        "The last step. An entry without `when` takes every record, whatever the others do; the sink is then not "
        "needed. A topic stands in the step once. `format` as in `route`."
    )

    route_all: Annotated[list[Route], Field(min_length=1)]

    @property
    def routes(self) -> list[Route]:
        return self.route_all

    @property
    def default(self) -> str | None:
        """The topic of an entry without a condition: where there is one, nothing is left for the sink."""
        return next((route.to for route in self.route_all if route.when is None), None)

    def emit(self, code: Code) -> None:
        """Puts the topics into the variable `topics`, a list that is never empty."""
        conditions = [
            (f"v{number}", code.compile(route.when, "bool"))
            for number, route in enumerate(self.route_all)
            if route.when is not None
        ]
        code.evaluate(conditions)
        taken = [(route.to, "True" if route.when is None else f"v{n}") for n, route in enumerate(self.route_all)]
        pairs = ", ".join(f"({topic!a}, {condition})" for topic, condition in taken)
        code.write(
            f"topics = [name for name, taken in ({pairs},) if taken]" + (" or [SINK]" if self.default is None else "")
        )
