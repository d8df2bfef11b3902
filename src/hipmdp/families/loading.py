"""Users' own families by `module:name`: an import, as `python -m` would do it from the current directory."""

import importlib
import os
import sys
from typing import Any

from hipmdp._errors import nearest
from hipmdp.families.protocol import AbstractFamily, BaseFamily

HINT = "name a hipmdp.AbstractFamily, or what hipmdp.gymnasium_family returned"


def load_family(text: str) -> type[BaseFamily] | BaseFamily:
    """The class or instance that `module:name` stands for, otherwise a `ValueError`."""
    module_name, _, name = text.partition(":")
    if not all(part.isidentifier() for part in module_name.split(".")) or not name.isidentifier():
        raise ValueError(f"A family of your own is written module:name, such as cartpole:family, got {text!r}.")
    found = getattr(user_module(module_name), name, None)
    if found is None:
        members = [n for n, value in vars(user_module(module_name)).items() if _is_family(value)]
        known = f" Its families: {', '.join(members)}." if members else f" {HINT.capitalize()}."
        raise ValueError(f"Module {module_name!r} has no {name!r}.{nearest(name, members)}{known}")
    if not _is_family(found):
        raise ValueError(f"{text!r} is a {type(found).__name__}, not a family: {HINT}.")
    return found


def _is_family(value: Any) -> bool:
    if isinstance(value, type):
        return issubclass(value, BaseFamily) and value not in (BaseFamily, AbstractFamily)
    return isinstance(value, BaseFamily)


def user_module(name: str) -> Any:
    """Import a module from the current directory or the Python path; where that fails, raise a `ValueError`."""
    here = os.getcwd()
    if not {"", here} & set(sys.path):
        sys.path.insert(0, here)
    # Files that were written since the last import must be found.
    importlib.invalidate_caches()
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            raise ValueError(f"There is no module {name!r} in {here!r} or on the Python path.") from None
        raise ValueError(f"Module {name!r} needs {error.name!r}, which is not installed.") from None
    except ValueError:
        raise
    except SystemExit as error:
        raise ValueError(
            f"Module {name!r} cannot be imported: it ends the program (sys.exit) instead of defining names."
        ) from error
    except Exception as error:
        raise ValueError(f"Module {name!r} cannot be imported: {type(error).__name__}: {error}") from error
