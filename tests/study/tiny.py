"""A study that is over in seconds: grid, two training episodes, model-free learners."""

from hipmdp.study.results import Results
from hipmdp.study.setup import Variant, parse_setup
from hipmdp.study.tasks import CellTask, plan

COMMAND = ["grid", "--methods", "model_free", "--episodes", "2", "--training-episodes", "2"]
"""The same for the command line, apart from seeds and --out."""


def cells(seeds: int = 2, methods: tuple[str, ...] = ("model_free",), variant: Variant | None = None) -> list[CellTask]:
    setup = parse_setup("grid", None, 2, 2, variant=variant or Variant())
    return plan([setup], list(methods), {"grid": ["test:0", "test:1"]}, list(range(seeds)))


def numbers(results: Results) -> dict:
    """All that must not depend on how a study was run."""
    return {
        record.name: (
            {name: repr(values.tolist()) for name, values in record.metrics.items() if name != "seconds"},
            record.states.tolist(),
            record.actions.tolist(),
            record.theta,
        )
        for record in results.records
    }
