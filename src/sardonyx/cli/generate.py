"""`sardonyx generate`: a model continues a prompt, with the times of its first and later tokens."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sardonyx.cli.completions import ModelPath
from sardonyx.cli.console import (
    chosen_providers,
    fail,
    following,
    json_option,
    print_json,
    print_text,
    provider_option,
    readable_errors,
    session_options,
    terminal_width,
)
from sardonyx.forks import without_fork
from sardonyx.session.options import SessionOptions

if TYPE_CHECKING:
    from sardonyx.generate.generator import Generator, TokenStream

_OPTIONS = {
    "max_tokens": "max_new_tokens",
    "temperature": "temperature",
    "top_k": "top_k",
    "top_p": "top_p",
    "min_p": "min_p",
    "penalty": "repetition_penalty",
    "seed": "seed",
}
"""Option -> field of `Settings`."""


@click.command(short_help="Continue a prompt by a decoder, as a stream of text.")
@click.argument("model", type=ModelPath())
@click.option("--prompt", help="Continue this text; - reads it from the standard input.")
@click.option("--prompt-file", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Continue the text of this file.")
@click.option("--ids", metavar="ID,ID…", help="Continue these tokens, for a model without a tokenizer.")
@click.option("--chat", is_flag=True, help="Take the prompt as a message, in the model's chat template.")
@click.option("--max-tokens", type=click.IntRange(min=1), help="Make this many tokens at most.")
@click.option("--temperature", type=click.FloatRange(min=0), help="Draw tokens, by scores divided by this.")
@click.option("--top-k", type=click.IntRange(min=0), help="Draw among this many tokens.")
@click.option("--top-p", type=click.FloatRange(min=0, max=1, min_open=True), help="Draw among tokens of this probability together.")
@click.option("--min-p", type=click.FloatRange(min=0, max=1), help="Draw among tokens of this part of the highest probability.")
@click.option(
    "--penalty", type=click.FloatRange(min=0, min_open=True), help="Make tokens that were there less likely, by this factor."
)
@click.option("--stop", "stops", multiple=True, metavar="TEXT", help="End at this text; repeat it.")
@click.option("--seed", type=int, help="Draw the same tokens again.")
@click.option("--draft", type=ModelPath(), help="Let this smaller model of the same vocabulary propose tokens.")
@click.option("--variant", default="", help="Take the files of a folder with this ending, such as fp16 for model_fp16.onnx.")
@provider_option
@session_options
@json_option
def generate(
    model: str,
    prompt: str | None,
    prompt_file: Path | None,
    ids: str | None,
    chat: bool,
    stops: Sequence[str],
    draft: str | None,
    variant: str,
    provider_names: Sequence[str],
    options: SessionOptions,
    as_json: bool,
    **chosen: Any,
) -> None:
    """Continue a prompt by MODEL, a folder or file of a decoder, and show the text as it is made."""
    with readable_errors():
        loader = _Loader(options, provider_names, variant)
        begun = time.perf_counter()
        generator = loader.load(model)
        helper = None if draft is None else loader.load(draft)
        load_s = time.perf_counter() - begun
        tokens = _prompt(generator, prompt, prompt_file, ids, chat=chat)
        settings: dict[str, Any] = {_OPTIONS[name]: value for name, value in chosen.items() if value is not None}
        settings |= {"stop_words": stops} if stops else {}
        start = time.perf_counter()
        with generator.stream(tokens, draft=helper, **settings) as stream:
            times, is_whole = _follow(stream, start, shown=not as_json, as_text=generator.tokenizer is not None)
            (result,) = stream.results
    facts = {
        "ids": result.ids,
        "text": result.text,
        "reason": result.reason if is_whole else "interrupted",
        "prompt_tokens": result.prompt_tokens,
        **_rates(times),
        "load_s": load_s,
    }
    if as_json:
        print_json(facts)
    else:
        click.echo()
        _print_rates(facts)
    if not is_whole:
        raise SystemExit(130)


class _Loader:
    """Loads models with the providers and options of the command."""

    def __init__(self, options: SessionOptions, provider_names: Sequence[str], variant: str) -> None:
        self._options, self._variant = options, variant
        self._providers = chosen_providers(provider_names) or None

    def load(self, model: str) -> Generator:
        """Return the generator of a folder or file, with a progress bar over the stages of its sessions."""
        with without_fork():
            from sardonyx.generate.loading import load  # other verbs need not wait for it

        with following(model):
            return load(model, variant=self._variant, options=self._options, providers=self._providers)


def _prompt(generator: Generator, text: str | None, file: Path | None, ids: str | None, *, chat: bool) -> str | list[int]:
    """Return the prompt that the options give, as tokens or text."""
    if [text, file, ids].count(None) != 2:
        fail("give the prompt with one of --prompt TEXT, --prompt-file FILE and --ids ID,ID…")
    if ids is not None:
        try:
            return [int(token) for token in ids.split(",")]
        except ValueError:
            fail(f"--ids takes whole numbers with commas between them, got {ids!r}")
    if file is not None:
        try:
            text = file.read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            fail(f"{file} is no text in UTF-8: {error}")
    elif text == "-":
        text = sys.stdin.read()
    assert text is not None
    return generator.chat_prompt([{"role": "user", "content": text}]) if chat else text


def _follow(stream: TokenStream, start: float, *, shown: bool, as_text: bool) -> tuple[list[float], bool]:
    """Show tokens as they come; returns when each came, in seconds, and whether the stream has ended by itself."""
    times: list[float] = []
    column, width = 0, terminal_width()
    try:
        for token in stream:
            times.append(time.perf_counter() - start)
            piece = token.text if as_text else f"{token.id} "
            if shown and not as_text and column + len(piece) > width:
                click.echo()
                column = 0
            if shown:
                click.echo(piece, nl=False)
                column += len(piece)
    except KeyboardInterrupt:
        return times, False
    return times, True


def _rates(times: Sequence[float]) -> dict[str, float | int | None]:
    """Return the time to the first token, and how many later ones came in a second."""
    between = times[-1] - times[0] if len(times) > 1 else 0.0
    return {
        "new_tokens": len(times),
        "first_token_s": times[0] if times else None,
        "tokens_per_s": (len(times) - 1) / between if between > 0 else None,
    }


def _print_rates(facts: Mapping[str, Any]) -> None:
    first, rate = facts["first_token_s"], facts["tokens_per_s"]
    parts = [
        f"{facts['prompt_tokens']} + {facts['new_tokens']} tokens, {facts['reason']}",
        "" if first is None else f"first after {1e3 * first:.1f} ms",
        "" if rate is None else f"then {rate:.1f} a second",
        f"loaded in {facts['load_s']:.2f} s",
    ]
    print_text("; ".join(part for part in parts if part))
