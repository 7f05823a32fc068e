"""route: choose the topic of a record."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import Field

from transforms.formats import Format  # noqa: TC001 - pydantic needs it at run time
from transforms.steps.base import Condition, Example, Made, Model, Step, TopicName

if TYPE_CHECKING:
    from transforms.code import Code


class Route(Model):
    to: TopicName
    when: Condition | None = None
    format: Format = "json"


class RouteStep(Step):
    summary: ClassVar = (
        "Sends a record to the topic of the first condition that is true, else to the default or the sink."
    )
    example: ClassVar = Example(
        yaml="route: [{when: amount > 1000.0, to: large}, {when: amount < 0, to: odd}]",
        inputs=[{"amount": 2000.5}, {"amount": -1}, {"amount": 10}, {"amount": None}],
        outputs=[Made({"amount": 2000.5}, "large"), Made({"amount": -1}, "odd"), Made({"amount": 10})],
        failures=["CelError: no such overload: null > double"],
    )
    notes: ClassVar = (
        "The last step. An entry without `when` stands last and takes all that is left; without one, the sink "
        "does. `format` is that of the topic: `json`, `string` or `bytes`."
    )

    route: Annotated[list[Route], Field(min_length=1)]

    @property
    def routes(self) -> list[Route]:
        return self.route

    @property
    def default(self) -> str | None:
        """The topic of the entry without a condition, which is the last."""
        return self.route[-1].to if self.route[-1].when is None else None

    def emit(self, code: Code) -> None:
        """Puts the topic into the variable `topic`, which holds the sink's where no route is taken."""
        fast = exact = ""
        conditions = [(route.to, code.compile(route.when, "bool")) for route in self.route if route.when is not None]
        code.prepare(*(condition for _, condition in conditions))
        for topic, condition in conditions:
            fast += f"{topic!r} if {condition.fast} else "
            exact += f"{topic!r} if {code.exact_call(condition)} else "
        last = repr(self.default) if self.default is not None else "SINK"
        code.attempt([f"topic = {fast}{last}"], [f"topic = {exact}{last}"])
