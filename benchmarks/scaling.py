"""Figure 5 of the paper: seconds per episode as data grows, GP against BNN. `python benchmarks/scaling.py [gp bnn]`

How it is measured stands in `hipmdp.study.paper_figures.scaling`.
"""

import json
import sys

from common import RESULTS, save

from hipmdp.report.measured import scaling_figure
from hipmdp.report.style import save_figure
from hipmdp.study.paper_figures.scaling import measure_scaling

if __name__ == "__main__":
    path = RESULTS / "scaling.json"
    stored = {r["model"]: r for r in json.loads(path.read_text())["rows"]} if path.exists() else {}
    for name in sys.argv[1:] or ["bnn", "gp"]:
        stored[name] = measure_scaling(name)
    results = [stored[name] for name in sorted(stored)]
    for result in results:
        updates = [r for r in result["rows"] if r["updated"]]
        print(
            f"{result['model']}: {len(result['rows'])} episodes in {result['seconds_all']:.0f} s "
            f"(ended by {result['stopped_by']}), "
            f"updates {updates[0]['seconds']:.2f} → {updates[-1]['seconds']:.2f} s, exponent {result['exponent']:.2f}, "
            f"held-out error {updates[-1]['held_out_error']:.3f}"
        )
    save_figure(scaling_figure(results), RESULTS, "scaling")
    save("scaling", "python benchmarks/scaling.py", results)
