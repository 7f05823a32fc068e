"""What is known at one place of a pipeline."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from transforms.lint.facts import Facts
from transforms.lint.fields import Fields

if TYPE_CHECKING:
    from transforms.yaml_tree import Path as KeyPath


@dataclass(slots=True)
class State:
    """What is known of the records that get to a step."""

    fields: Fields = field(default_factory=lambda: Fields("map"))
    facts: Facts = field(default_factory=Facts)
    unread: dict[str, KeyPath] = field(default_factory=dict)
    """Fields that a step has set and nothing has read, and where."""
    key: str = "dyn"
    """The CEL type of `key`."""
    made_by: str | None = None
    """The step that has made something else the whole value, of which no other step has made an object since."""
    stopped: str | None = None
    """Why no record gets here."""

    def forget(self) -> None:
        """The value may be any; key, headers and topic are what they were."""
        self.fields, self.unread, self.made_by = Fields(), {}, None
        self.facts.forget_except(set())
