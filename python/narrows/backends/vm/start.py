"""What the guest starts: the worker, without what `import narrows` brings along for people (results, frames).

With an argument it starts nothing, and writes down as JSON which modules the worker has imported, and from
which files.
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
