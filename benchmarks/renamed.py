"""The built-in families under other names: what the recipe makes of a family that it has no values for.

From this directory:

    hipmdp compare renamed:patients renamed:pendulums compass --methods embedded --training train32 \
        --training-episodes 150 --instances validation:0,validation:1,validation:2,validation:3 --episodes 2 --seeds 1 \
        --jobs 2 --out recipe
    hipmdp compare renamed:maze --methods embedded --training train --training-episodes 500 --instances test:0,test:1 \
        --episodes 2 --seeds 1 --out recipe
"""

from dataclasses import replace

from hipmdp.families.acrobot import Acrobot
from hipmdp.families.grid import Grid
from hipmdp.families.hiv import HIV
from hipmdp.families.specification import Specification


class Patients(HIV):
    @property
    def specification(self) -> Specification:
        return replace(super().specification, family="patients")


class Pendulums(Acrobot):
    @property
    def specification(self) -> Specification:
        return replace(super().specification, family="pendulums")


class Maze(Grid):
    @property
    def specification(self) -> Specification:
        return replace(super().specification, family="maze")


patients, pendulums, maze = Patients(), Pendulums(sd=0.25), Maze()
