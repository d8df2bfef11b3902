"""Value estimates as rows of text, for a terminal and for a page."""

from collections.abc import Sequence
from typing import Any

from hipmdp.from_logs.evaluation.estimate import Estimate
from hipmdp.from_logs.evaluation.evaluate import Evaluation
from hipmdp.report.values.picture import NAMES

COLUMNS = (
    "system",
    "the policy",
    "what was done",
    "the policy, undiscounted",
    "what was done, undiscounted",
    "verdict",
)
SHORT_COLUMNS = ("system", "the policy", "what was done", "verdict")
"""As many as a terminal has room for."""
SINGLE_COLUMNS = ("system", *NAMES.values())


def interval_text(estimate: Estimate) -> str:
    """`value [low, high]`, or a dash."""
    if not estimate.is_finite:
        return "–"
    return f"{estimate.value:.4g} [{estimate.low:.4g}, {estimate.high:.4g}]"


def main_rows(found: Sequence[Evaluation]) -> list[list[str]]:
    """A row of `COLUMNS` for each system."""
    return [
        [e.system, *map(interval_text, (e.value, e.logged, e.undiscounted, e.logged_undiscounted)), e.verdict]
        for e in found
    ]


def short_rows(found: Sequence[Evaluation]) -> list[list[str]]:
    """A row of `SHORT_COLUMNS` for each system."""
    return [[e.system, interval_text(e.value), interval_text(e.logged), e.verdict] for e in found]


def single_rows(found: Sequence[Evaluation]) -> list[list[str]]:
    """A row of `SINGLE_COLUMNS` for each system; none where what was done was asked for."""
    return [[e.system, *(interval_text(e.estimates[name]) for name in NAMES)] for e in found if e.estimates]


def reasons(found: Sequence[Evaluation]) -> list[str]:
    """A sentence for each verdict that cannot be known."""
    return [f"{e.system}: cannot tell. {'; '.join(e.reasons).capitalize()}." for e in found if e.reasons]


def verdict_counts(found: Sequence[Evaluation]) -> str:
    """How many of which."""
    words = [e.verdict for e in found]
    return ", ".join(f"{words.count(word)} {word}" for word in dict.fromkeys(words))


def evaluation_facts(evaluation: Evaluation) -> dict[str, Any]:
    """The same as JSON-ready values; null where there is no estimate."""

    def plain(estimate: Estimate) -> dict[str, float] | None:
        return estimate._asdict() if estimate.is_finite else None

    def each(estimates: dict[str, Estimate]) -> dict[str, Any]:
        return {name: plain(estimate) for name, estimate in estimates.items()}

    return {
        "system": evaluation.system,
        "value": plain(evaluation.value),
        "undiscounted": plain(evaluation.undiscounted),
        "logged": plain(evaluation.logged),
        "logged_undiscounted": plain(evaluation.logged_undiscounted),
        "verdict": evaluation.verdict,
        "reasons": list(evaluation.reasons),
        "estimates": each(evaluation.estimates),
        "estimates_undiscounted": each(evaluation.estimates_undiscounted),
        "repeated": plain(evaluation.repeated),
        "earned": evaluation.earned,
        "unsupported": evaluation.unsupported,
        "effective_episodes": evaluation.effective_episodes,
        "complete_episodes": evaluation.episodes,
    }
