from sardonyx import *  # noqa: F403  its names are those of sardonyx.__all__
from sardonyx import __version__ as __version__
from sardonyx import capi as capi
