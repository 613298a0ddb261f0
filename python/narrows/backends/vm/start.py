"""What the guest starts: the worker, without what `import narrows` brings along for people (results, frames)."""

import importlib
import sys
import types
from pathlib import Path

ours = Path(__file__).resolve().parents[2]
bare = sys.modules["narrows"] = types.ModuleType("narrows")
bare.__path__ = [str(ours)]

if __name__ == "__main__":
    importlib.import_module("narrows.backends.vm.guest").main()
else:
    importlib.import_module("narrows.backends.vm.guest")
