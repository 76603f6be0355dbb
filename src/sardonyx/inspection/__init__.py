"""A model as one self-contained HTML page: its graph before and after optimization, who runs what, memory and profiles."""

from sardonyx.inspection.collect import Inspection, inspect_model
from sardonyx.inspection.page import render_page

__all__ = ["Inspection", "inspect_model", "render_page"]
