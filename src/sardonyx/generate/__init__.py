"""Text generation over any decoder with a cache.

from sardonyx import generate
model = generate.load("folder")
print(model.generate("Once upon a time", max_new_tokens=64)[0].text)
"""

from __future__ import annotations

from sardonyx.generate.batching import Batch, Request
from sardonyx.generate.generator import Generator, TokenStream
from sardonyx.generate.loading import load
from sardonyx.generate.row import Generation, Token
from sardonyx.generate.settings import Processor, Settings
from sardonyx.generate.signature import ROLES

__all__ = ["ROLES", "Batch", "Generation", "Generator", "Processor", "Request", "Settings", "Token", "TokenStream", "load"]
