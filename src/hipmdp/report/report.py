"""`report`: draw everything that the stored results of one or several studies allow."""

from pathlib import Path

from matplotlib import rc_context
from matplotlib.figure import Figure

from hipmdp._files import file_name, output_directory
from hipmdp.report.ablation import ablation_figure
from hipmdp.report.curves import comparison_figure, error_figure, first_episodes_figure, long_figure
from hipmdp.report.measured import parameters_figure, scaling_figure, uncertainty_figure
from hipmdp.report.scenes import scene_figure
from hipmdp.report.style import FONTS, save_figure
from hipmdp.study.paper_figures.extras import read_extras
from hipmdp.study.results import read_results

NUMBERS: dict[str, tuple[str, str]] = {"grid": ("2", "6a"), "acrobot": ("3", "6-"), "hiv": ("4", "6b")}
"""By family: the paper's figure of its comparison, and of the model's error (the paper has none for acrobot)."""


def report(directories: list[Path], out: Path) -> list[Path]:
    """Write all figures as PNG and SVG; returns the paths of the PNGs."""
    output_directory(out)
    written: list[Path] = []

    def keep(figure: Figure | None, name: str) -> None:
        if figure is not None:
            written.append(save_figure(figure, out, file_name(name))[0])

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
                keep(scene_figure(everything, family), f"figure{number}a-{family}")
                keep(comparison_figure(short, family), f"figure{number}b-{family}")
                keep(error_figure(short, family), f"figure{error}-{family}")
            else:
                # A user's own family: the paper has no figures of it.
                keep(scene_figure(everything, family), f"episode-{family}")
                keep(comparison_figure(short, family), f"comparison-{family}")
                keep(error_figure(short, family), f"error-{family}")
            keep(first_episodes_figure(short, family), f"first-episodes-{family}")
            if len(short.names("variant", family=family)) > 1:
                keep(ablation_figure(short, family), f"ablations-{family}")
            keep(long_figure(long, family), f"{'figure8' if base in NUMBERS else 'long'}-{family}")
            parameters = parameters_figure(everything.family_facts(family))
            keep(parameters, "figure7-parameters" if base in NUMBERS else f"parameters-{family}")
        # One seed is enough: the last measured of each model.
        scaling = list({measured["model"]: measured for measured in read_extras(directories, "scaling")}.values())
        if scaling:
            keep(scaling_figure(scaling), "figure5-scaling")
    return written
