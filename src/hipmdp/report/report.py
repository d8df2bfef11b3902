"""`report`: draw everything that the stored results of one or several studies allow."""

from collections.abc import Callable
from pathlib import Path

from matplotlib import rc_context
from matplotlib.figure import Figure

from hipmdp.data.files import output_directory
from hipmdp.report.ablation import ablation_figure
from hipmdp.report.curves import comparison_figure, error_figure, lived_figure, long_figure
from hipmdp.report.measured import parameters_figure, scaling_figure, uncertainty_figure
from hipmdp.report.scenes import path_figure, patient_figure, pendulum_figure
from hipmdp.report.style import FONTS, save_figure
from hipmdp.study.extras import read_extras
from hipmdp.study.results import Results, read_results

NUMBERS: dict[str, tuple[str, str]] = {"grid": ("2", "6a"), "acrobot": ("3", "6-"), "hiv": ("4", "6b")}
"""By family: the paper's figure of its comparison, and of the model's error (the paper has none for acrobot)."""
SCENES: dict[str, Callable[[Results, str], Figure | None]] = {
    "grid": path_figure,
    "acrobot": pendulum_figure,
    "hiv": patient_figure,
}


def report(directories: list[Path], out: Path) -> list[Path]:
    """Write all figures as PNG and SVG; returns the paths of the PNGs."""
    output_directory(out)
    written: list[Path] = []

    def keep(figure: Figure | None, name: str) -> None:
        if figure is not None:
            written.append(save_figure(figure, out, name)[0])

    with rc_context(FONTS):
        uncertainty = read_extras(directories, "uncertainty")
        if uncertainty:
            keep(uncertainty_figure(uncertainty[0]), "figure1-uncertainty")
        everything = read_results(*directories)
        short, long = everything.of_length(long=False), everything.of_length(long=True)
        for family in everything.names("family"):
            base = family.partition("-")[0]
            if base in NUMBERS:
                number, error = NUMBERS[base]
                keep(SCENES[base](everything, family), f"figure{number}a-{family}")
                keep(comparison_figure(short, family), f"figure{number}b-{family}")
                keep(error_figure(short, family), f"figure{error}-{family}")
            else:
                # A family of users' own: the paper has no figures of it.
                keep(comparison_figure(short, family), f"comparison-{family}")
                keep(error_figure(short, family), f"error-{family}")
            keep(lived_figure(short, family), f"lived-{family}")
            if len(short.names("variant", family=family)) > 1:
                keep(ablation_figure(short, family), f"ablations-{family}")
            keep(long_figure(long, family), f"{'figure8' if base in NUMBERS else 'long'}-{family}")
        # One seed is enough: the last measured of each model.
        scaling = list({told["model"]: told for told in read_extras(directories, "scaling")}.values())
        if scaling:
            keep(scaling_figure(scaling), "figure5-scaling")
        keep(parameters_figure(), "figure7-parameters")
    return written
