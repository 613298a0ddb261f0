"""Starts the guest's worker without the parts of `narrows` that it does not need (results, data frames).

With an argument, this program does not start the worker, but prints as JSON the modules that the worker
imports, with their files.
"""

import importlib
import json
import sys
import types
from pathlib import Path

bare = sys.modules["narrows"] = types.ModuleType("narrows")
bare.__path__ = [str(Path(__file__).resolve().parents[2])]
worker = importlib.import_module("narrows.backends.vm.guest")
if len(sys.argv) == 1:
    worker.main()
else:
    files = {name: getattr(module, "__file__", None) for name, module in list(sys.modules.items())}
    json.dump({name: file for name, file in files.items() if file and name != "__main__"}, sys.stdout)
