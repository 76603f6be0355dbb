"""`sardonyx completion SHELL`: a script by which the shell completes the words of this command."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

__all__ = ["completion"]

_NAME, _VARIABLE = "sardonyx", "_SARDONYX_COMPLETE"
_BASH = """\
# sardonyx completion bash: put this into ~/.bashrc as
#     eval "$(sardonyx completion bash)"
_sardonyx_completion() {
    local line value
    COMPREPLY=()
    while IFS= read -r line; do
        value="${line#*,}"
        case "${line%%,*}" in
            file) compopt -o default ;;
            dir) compopt -o dirnames ;;
            *)
                COMPREPLY+=("$(printf %q "$value")")
                if [[ $value == */ ]]; then compopt -o nospace; fi
                ;;
        esac
    done < <(env COMP_WORDS="${COMP_WORDS[*]}" COMP_CWORD="$COMP_CWORD" _SARDONYX_COMPLETE=bash_complete "$1" 2>/dev/null)
}
complete -o nosort -F _sardonyx_completion sardonyx 2>/dev/null || complete -F _sardonyx_completion sardonyx
"""
_HOWTO = {
    "zsh": '# put this into ~/.zshrc, behind compinit: eval "$(sardonyx completion zsh)"\n',
    "fish": "# put this into ~/.config/fish/config.fish: sardonyx completion fish | source\n",
}


@click.command(short_help="Print a script that completes commands in SHELL.")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print a script for SHELL that completes verbs, options, models, providers, rules and operators.

    For bash: eval "$(sardonyx completion bash)"
    """
    if shell == "bash":
        click.echo(_BASH, nl=False)
        return
    root = context.find_root().command
    made = get_completion_class(shell)
    if made is None:
        raise click.ClickException(f"this version of click knows no {shell}")
    click.echo(_HOWTO[shell] + made(root, {}, _NAME, _VARIABLE).source().strip("\n"))
