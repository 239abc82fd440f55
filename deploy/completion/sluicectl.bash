# bash completion for sluicectl
_sluicectl() {
    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}
    local commands="status clusters endpoints add remove reweight replace drain-endpoint undrain-endpoint
        limits limit cache certs reload metrics log-level drain stop completion"
    local flags="--address --tls-ca --tls-cert --tls-key --tls-server-name --timeout --json --help --version --weight --if-version --preview
        --rate --burst --max --queue --service --method --key --key-hex --key-file"
    local values=" --address --tls-ca --tls-cert --tls-key --tls-server-name --timeout --weight --if-version --rate --burst --max --queue --service --method
        --key --key-hex --key-file "
    case $previous in
    --key-file | --tls-ca | --tls-cert | --tls-key) COMPREPLY=($(compgen -f -- "$current")); return ;;
    --address | --tls-server-name | --timeout | --weight | --if-version) return ;;
    --rate | --burst | --max | --queue | --service | --method | --key | --key-hex) return ;;
    limit) COMPREPLY=($(compgen -W "set reset" -- "$current")); return ;;
    cache) COMPREPLY=($(compgen -W "stats purge" -- "$current")); return ;;
    set | reset)
        if [[ $current != -* ]]; then
            local limits=$(sluicectl --timeout 1s limits 2>/dev/null | awk 'NR > 1 { print $1 }')
            COMPREPLY=($(compgen -W "$limits" -- "$current"))
            return
        fi ;;
    log-level) COMPREPLY=($(compgen -W "trace debug info warn error off" -- "$current")); return ;;
    completion) COMPREPLY=($(compgen -W "bash zsh" -- "$current")); return ;;
    clusters | endpoints | add | remove | reweight | replace | drain-endpoint | undrain-endpoint)
        if [[ $current != -* ]]; then
            local clusters=$(sluicectl --timeout 1s clusters 2>/dev/null | awk 'NR > 1 { print $1 }')
            COMPREPLY=($(compgen -W "$clusters" -- "$current"))
            return
        fi ;;
    esac
    local i word skip=
    for ((i = 1; i < COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        if [[ $skip ]]; then skip=; continue; fi
        if [[ $values == *[[:space:]]"$word"[[:space:]]* ]]; then skip=1; continue; fi
        if [[ $word != -* ]]; then commands=; break; fi
    done
    COMPREPLY=($(compgen -W "$commands $flags" -- "$current"))
}
complete -F _sluicectl sluicectl
