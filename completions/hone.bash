# Completion of hone(1) for bash: commands, their options and verbs, algorithms, kernels and platforms, files.
# The command itself says what there is, so that nothing here grows stale.

_hone_commands() {
    hone help 2>/dev/null | sed -n 's/^  \([a-z]*\) .*/\1/p'
}

_hone_options() {
    hone help "$1" 2>/dev/null | sed -n 's/^  \(--[a-z0-9-]*\).*/\1/p'
}

_hone_verbs() {
    hone help "$1" 2>/dev/null | sed -n 's/^  \([a-z][a-z]*\) .*/\1/p'
}

_hone_algorithms() {
    hone list 2>/dev/null | sed -n 's/^\([a-z0-9_]*\)[@(].*/\1/p'
}

_hone_listed() { # COLUMN of kernels
    hone list 2>/dev/null | awk -v column="$1" '/^   / && $4 ~ /^-?[0-9]+$/ {print $column}' | sort -u
}

_hone() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} command=${COMP_WORDS[1]} words=
    COMPREPLY=()
    if [ "$COMP_CWORD" -eq 1 ]; then
        words="$(_hone_commands) --version --help"
    elif [ "$before" = --platform ]; then
        words=$(_hone_listed 2)
    elif [ "$before" = --kernel ]; then
        words=$(_hone_listed 1)
    elif [ "$before" = --store ]; then
        words='sqlite: json: postgresql: memory: none'
    elif [ "$before" = --regime ]; then
        words='warm cold graph eager'
    elif [ "$before" = --format ]; then
        words='hone ejkernel tokamax'
    elif [ "$before" = --device ]; then
        words='here'
    elif [[ $word == -* ]]; then
        words="$(_hone_options "$command") --help"
    else
        case $command in
        help) words="$(_hone_commands) environment" ;;
        list) words=$(_hone_algorithms) ;;
        store | record | pack | queue) [ "$COMP_CWORD" -eq 2 ] && words=$(_hone_verbs "$command") ;;
        esac
    fi
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}

# Where nothing is offered, file names are.
complete -o default -F _hone hone
