// Completion scripts; deploy/completion holds the same texts for packages (a test compares them).
#include "args.h"

namespace sluice::ctl {
namespace {

constexpr std::string_view kBash = R"script(# bash completion for sluicectl
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
)script";

constexpr std::string_view kZsh = R"script(#compdef sluicectl
# zsh completion for sluicectl
_sluicectl() {
    local -a commands
    local state context line
    commands=(
        'status:the process'
        'clusters:clusters and the versions of their lists'
        'endpoints:the endpoints of a cluster'
        'add:add endpoints'
        'remove:remove endpoints'
        'reweight:change weights'
        'replace:replace the whole list'
        'drain-endpoint:no new calls for an endpoint'
        'undrain-endpoint:calls for an endpoint again'
        'limits:limits of rate and concurrency'
        'limit:set or reset a limit'
        'cache:look at or purge the response cache'
        'certs:certificates of TLS'
        'reload:read the configuration again'
        'metrics:all metrics'
        'log-level:show or set the log level'
        'drain:finish what runs, then exit'
        'stop:exit now'
        'completion:a completion script'
    )
    _arguments \
        '--address[admin address]:address:' '--tls-ca[authority of the daemon]:file:_files' \
        '--tls-cert[our certificate]:file:_files' '--tls-key[its key]:file:_files' \
        '--tls-server-name[name of the daemon]:name:' '--timeout[for the answer]:duration:' '--json[print JSON]' \
        '--weight[weight of endpoints]:weight:' '--if-version[only at this version]:version:' \
        '--preview[change nothing]' '--rate[calls a second]:rate:' '--burst[calls at once after a pause]:calls:' \
        '--max[calls under way]:calls:' '--queue[calls that may wait]:calls:' '--service[of cached calls]:service:' \
        '--method[of cached calls]:method:' '--key[request message]:text:' '--key-hex[request message]:hex:' \
        '--key-file[request message]:file:_files' '(-h --help)'{-h,--help}'[help]' '--version[version]' \
        '1: :{_describe command commands}' '*:: :->rest'
    if [[ $state == rest ]]; then
        case $words[1] in
        log-level) compadd trace debug info warn error off ;;
        completion) compadd bash zsh ;;
        cache) ((CURRENT == 2)) && compadd stats purge ;;
        limit)
            ((CURRENT == 2)) && compadd set reset
            ((CURRENT == 3)) && compadd -- $(sluicectl --timeout 1s limits 2>/dev/null | awk 'NR > 1 { print $1 }') ;;
        *) ((CURRENT == 2)) && compadd -- $(sluicectl --timeout 1s clusters 2>/dev/null | awk 'NR > 1 { print $1 }') ;;
        esac
    fi
}
if [[ $funcstack[1] == _sluicectl ]]; then _sluicectl "$@"; else compdef _sluicectl sluicectl; fi
)script";

}  // namespace

std::string_view CompletionScript(std::string_view shell) {
  if (shell == "bash") return kBash;
  if (shell == "zsh") return kZsh;
  return {};
}

}  // namespace sluice::ctl
