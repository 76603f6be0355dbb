"""Conversations as prompts, by the templates of Jinja that folders of models have.

A template comes with a model, from anywhere: it is rendered in a sandbox, without files, imports and attributes that lead to
Python, with bounded texts and products.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from sardonyx.errors import InvalidArgument, NotFound
from sardonyx.forks import without_fork

__all__ = ["ChatTemplate"]

_MOST_CHARACTERS = 4_000_000
"""Of a rendered conversation, and of a product in a template."""


class ChatTemplate:
    """The template of a model's conversations."""

    def __init__(self, text: str, special_tokens: Mapping[str, str] | None = None) -> None:
        """Compile a template.

        Args:
            text: the template.
            special_tokens: what else it may name, such as bos_token.

        Raises:
            NotFound: the package `jinja2` is not installed.
            InvalidArgument: it is no template.
        """
        try:
            with without_fork():
                import jinja2  # only conversations need it
                import jinja2.ext
                import jinja2.sandbox
        except ImportError as error:
            raise NotFound('chat templates need the package jinja2: pip install "sardonyx[generate]"') from error
        environment: Any = _bounded(jinja2.sandbox.ImmutableSandboxedEnvironment)(
            trim_blocks=True, lstrip_blocks=True, extensions=[jinja2.ext.loopcontrols]
        )
        environment.filters["tojson"] = _to_json
        environment.globals |= {"raise_exception": _refuse, "strftime_now": _now}
        self._errors = (jinja2.TemplateError, TypeError, ValueError, ArithmeticError, LookupError, AttributeError)
        self._tokens = dict(special_tokens or {})
        try:
            self._template = environment.from_string(text)
        except jinja2.TemplateError as error:
            raise InvalidArgument(f"the chat template cannot be read: {error}") from error

    def render(self, messages: Sequence[Mapping[str, object]], *, continues: bool = True, **more: object) -> str:
        """Return a conversation as text.

        Args:
            messages: objects with "role" and "content", in order.
            continues: whether the text ends where the model's answer begins (the template's add_generation_prompt).
            more: other names that the template knows, such as tools.

        Raises:
            InvalidArgument: the template fails, refuses the messages, or makes a text without end.
        """
        names = {**self._tokens, **more, "messages": list(messages), "add_generation_prompt": continues}
        parts, length = [], 0
        try:
            for part in self._template.generate(**names):
                parts.append(part)
                length += len(part)
                if length > _MOST_CHARACTERS:
                    raise InvalidArgument(f"the chat template makes more than {_MOST_CHARACTERS} characters")
        except InvalidArgument:
            raise
        except self._errors as error:
            raise InvalidArgument(f"the chat template fails: {error}") from error
        return "".join(parts)


def _bounded(base: Any) -> Any:
    """Return a class of sandboxes in which products have bounded sizes."""

    class Bounded(base):  # type: ignore[misc]  # the base is known when jinja2 is imported
        """A sandbox without products and powers that fill the memory."""

        intercepted_binops = frozenset(["*", "**"])

        def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
            """Compute a product or a power."""
            sizes = [len(value) if hasattr(value, "__len__") else abs(value) for value in (left, right)]
            if operator == "**" and (sizes[0] > 1000 or sizes[1] > 100):
                raise InvalidArgument(f"the chat template computes a power of {left} to {right}")
            if any(hasattr(value, "__len__") for value in (left, right)) and sizes[0] * sizes[1] > _MOST_CHARACTERS:
                raise InvalidArgument("the chat template repeats a text or list without measure")
            return super().call_binop(context, operator, left, right)

    return Bounded


def _to_json(value: object, ensure_ascii: bool = False, indent: int | None = None) -> str:
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent)


def _refuse(message: str) -> NoReturn:
    raise InvalidArgument(f"the chat template refuses the conversation: {message}")


def _now(form: str) -> str:
    return datetime.datetime.now().strftime(form)
