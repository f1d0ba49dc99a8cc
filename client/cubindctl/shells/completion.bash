# Completion of cubindctl for bash, made by `cubindctl completion bash`.
_cubindctl() {
  local candidate
  COMPREPLY=()
  while IFS=$'\t' read -r candidate _; do
    case $candidate in
      :files) compopt -o default ;;
      :folders) compopt -o dirnames ;;
      *) COMPREPLY+=("$candidate") ;;
    esac
  done < <("${COMP_WORDS[0]/#\~/$HOME}" __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -F _cubindctl cubindctl
