"""YAML as editors read it: YAML 1.2 has no dates."""

from __future__ import annotations

from typing import Any

import yaml


class _Texts(yaml.SafeLoader):
    """Leaves dates alone, as JSON does."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - PyYAML has it so
        first: [(tag, pattern) for tag, pattern in found if not tag.endswith("timestamp")]
        for first, found in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


def load(text: str | bytes) -> Any:
    return yaml.load(text, _Texts)
