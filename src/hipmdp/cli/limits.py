"""Caution and limits on the command line: what was asked for, and what a run says about them."""

from typing import Any, NamedTuple

from hipmdp.adaptation.guarding import KEPT
from hipmdp.adaptation.run import Run
from hipmdp.cli.logs.options import refuse_given
from hipmdp.settings.limits import RISK, WITHIN, Limits, check_caution, limits_of


class Care(NamedTuple):
    """How what is not known counts."""

    caution: float
    limits: Limits | None


def care_of(caution: float | None, limits: tuple[str, ...], risk: float, within: int) -> Care:
    """What the flags say; numbers without a limit are refused."""
    chosen = Care(check_caution(caution or 0.0), limits_of(limits, risk, within))
    if chosen.limits is None:
        refuse_given("is for --limit", risk=risk != RISK, within=within != WITHIN)
    return chosen


def kept_limits(run: Run, limits: Limits | None) -> list[str]:
    """A line for every episode: in how many decisions an action was allowed, and what came of them."""
    if limits is None:
        return []
    lines = []
    for index, counts in enumerate(_counts(run)):
        decisions, allowed, broken = (counts[name] for name in KEPT)
        lines.append(
            f"episode {index}: an action was allowed in {allowed} of {decisions} decisions; after {broken} of these "
            f"{limits} was broken within {limits.within} steps"
        )
    return lines


def limits_facts(run: Run) -> dict[str, Any]:
    """The same numbers for a JSON file; nothing without limits."""
    counts = _counts(run)
    return {"limits": counts} if counts else {}


def _counts(run: Run) -> list[dict[str, Any]]:
    return [{name: info[name] for name in KEPT} for info in run.trace if KEPT[0] in info]
