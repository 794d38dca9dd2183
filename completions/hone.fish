# Completion of hone(1) for fish: commands, their options and verbs, algorithms, kernels and platforms, files.
# The command itself says what there is, so that nothing here grows stale.

function __hone_commands
    hone help 2>/dev/null | string replace -rf '^  ([a-z]+) .*' '$1'
end

function __hone_listed # COLUMN of kernels
    hone list 2>/dev/null | awk -v column=$argv[1] '/^   / && $4 ~ /^-?[0-9]+$/ {print $column}' | sort -u
end

# Nothing where files are meant.
function __hone_offers
    set -l words (commandline -opc)
    set -l word (commandline -ct)
    if test (count $words) -eq 1
        __hone_commands
        printf '%s\n' --version --help
        return
    end
    switch $words[-1]
        case --platform
            __hone_listed 2
            return
        case --kernel
            __hone_listed 1
            return
        case --store
            printf '%s\n' sqlite: json: postgresql: memory: none
            return
        case --regime
            printf '%s\n' warm cold graph eager
            return
        case --format
            printf '%s\n' hone ejkernel tokamax
            return
        case --device
            echo here
            return
    end
    if string match -q -- '-*' $word
        hone help $words[2] 2>/dev/null | string replace -rf '^  (--[a-z0-9-]+).*' '$1'
        echo -- --help
        return
    end
    switch $words[2]
        case help
            __hone_commands
            echo environment
        case list
            hone list 2>/dev/null | string replace -rf '^([a-z0-9_]+)[@(].*' '$1'
        case store record pack queue
            test (count $words) -eq 2
            and hone help $words[2] 2>/dev/null | string replace -rf '^  ([a-z]+) .*' '$1'
    end
end

complete -c hone -a '(__hone_offers)'
