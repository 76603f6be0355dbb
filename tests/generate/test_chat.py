"""Tests of templates of conversations."""

from __future__ import annotations

import pytest

from sardonyx.errors import InvalidArgument
from sardonyx.generate.chat import ChatTemplate

pytest.importorskip("jinja2")

MESSAGES = [{"role": "user", "content": "Hi"}]


def test_a_conversation_becomes_text() -> None:
    """With the tokens that the template names."""
    template = ChatTemplate(
        "{% for m in messages %}{{ bos_token }}{{ m['role'] }}: {{ m.content }}{% endfor %}{% if add_generation_prompt %}>{% endif %}",
        {"bos_token": "<s>"},
    )
    assert template.render(MESSAGES) == "<s>user: Hi>"
    assert template.render(MESSAGES, continues=False) == "<s>user: Hi"


def test_a_template_can_refuse_a_conversation() -> None:
    """Its message is the error's."""
    with pytest.raises(InvalidArgument, match="roles must alternate"):
        ChatTemplate("{{ raise_exception('roles must alternate') }}").render(MESSAGES)


@pytest.mark.parametrize(
    "text",
    [
        "{{ messages.__class__.__mro__ }}",
        "{{ ''.__class__.__base__.__subclasses__() }}",
        "{{ messages.append(1) }}",
        "{% include 'secret' %}",
        "{{ 'a' * 999999999 }}",
        "{{ 9 ** 99999 }}",
        "{% for i in range(99999999) %}a{% endfor %}",
        "{% for i in range(99999) %}{% for j in range(99999) %}aaaaaaaa{% endfor %}{% endfor %}",
        "{{ missing.attribute }}",
    ],
)
def test_a_hostile_template_is_an_error(text: str) -> None:
    """Nothing of Python is reached, and no memory filled."""
    with pytest.raises(InvalidArgument, match="chat template"):
        ChatTemplate(text).render(MESSAGES)


def test_what_leads_to_python_is_empty() -> None:
    """An attribute that the sandbox hides prints as nothing."""
    assert ChatTemplate("a{{ raise_exception.__globals__ }}b").render(MESSAGES) == "ab"


def test_what_is_no_template_is_an_error() -> None:
    """When it is read."""
    with pytest.raises(InvalidArgument, match="cannot be read"):
        ChatTemplate("{% if %}")
