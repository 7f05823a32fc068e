"""Everything that can be said about some files, of each and of all together."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from transforms.lint import flow, topics
from transforms.lint.view import View, problems, view
from transforms.loading import PipelineError
from transforms.test_files import is_test_file, load_test_file, pipeline_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from transforms.lint.findings import Finding


def lint_files(paths: Sequence[Path], env: Mapping[str, str] = os.environ) -> list[Finding]:
    """Sorted by place. Files of tests are those that end with `.tests.yaml`; all others are pipelines."""
    findings: list[Finding] = []
    views: list[View] = []
    for path in paths:
        if is_test_file(path):
            findings += _of_tests(path, env)
            continue
        seen = view(path, env)
        if isinstance(seen, View):
            flow.walk(seen)
            topics.check(seen, env)
            views.append(seen)
        else:
            findings += seen
    topics.check_together(views)
    findings += [finding for seen in views for finding in seen.findings]
    return sorted(set(findings))


def _of_tests(path: Path, env: Mapping[str, str]) -> list[Finding]:
    found: list[Finding] = []
    for check in (lambda: pipeline_of(path), lambda: load_test_file(path, env)):
        try:
            check()
        except PipelineError as error:
            found += problems(error)
    return found
