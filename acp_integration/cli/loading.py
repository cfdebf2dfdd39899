"""Temporary."""

import importlib
import sys
from pathlib import Path


def load_agent(target: str):
    module, _, name = target.partition(":")
    return getattr(importlib.import_module(module), name)


def project_directory(agent) -> Path:
    return Path(sys.modules[agent.__module__].__file__).parent
