# bash completion for sluicectl: the program itself knows what may follow
_sluicectl() {
    local IFS=$'\n' line
    COMPREPLY=()
    for line in $("${COMP_WORDS[0]}" __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null); do
        if [[ $line == :files ]]; then
            COMPREPLY=($(compgen -f -- "${COMP_WORDS[COMP_CWORD]}"))
        else
            COMPREPLY+=("${line%%$'\t'*}")
        fi
    done
}
complete -F _sluicectl sluicectl
