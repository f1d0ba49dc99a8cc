#compdef cubindctl
# Completion of cubindctl for zsh, made by `cubindctl completion zsh`.
_cubindctl() {
  local line
  local -a candidates
  for line in "${(@f)$(${~words[1]} __complete "${(@Q)words[2,CURRENT]}" 2>/dev/null)}"; do
    case $line in
      :files) compset -P '--*='; _files; return ;;
      :folders) compset -P '--*='; _files -/; return ;;
      ?*) candidates+=("${${line//:/\\:}/$'\t'/:}") ;;
    esac
  done
  _describe cubindctl candidates
}

# This file is autoloaded as the function of its name, or read by `source`.
if [[ $funcstack[1] == _cubindctl ]]; then
  _cubindctl "$@"
else
  compdef _cubindctl cubindctl
fi
