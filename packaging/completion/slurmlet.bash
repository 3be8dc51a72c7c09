# Completion of the command lines of slurmlet and slurmlet-operator for bash. Commands and flags are what
# the program itself lists with --help; only the words that some flags choose among are here.

_slurmlet() {
  local program=$1 name=${1##*/} current=${COMP_WORDS[COMP_CWORD]} flag=${COMP_WORDS[COMP_CWORD - 1]}
  local commands command= help i
  COMPREPLY=()

  # bash takes "--flag=value" for three words.
  if [[ $current == '=' ]]; then
    current=
  elif [[ $flag == '=' ]]; then
    flag=${COMP_WORDS[COMP_CWORD - 2]}
  fi

  # "  slurmlet check …", a line each, or "usage: slurmlet-operator [check | …] [flags]".
  commands=$("$program" --help 2>/dev/null | sed -n -e "s/^  $name \([a-z][a-z-]*\)\( .*\)\{0,1\}\$/\1/p" \
    -e "s/^usage: $name \[\([a-z| -]*\)\] \[flags\]\$/\1/p" | tr -s ' |' '\n')
  for ((i = 1; i < COMP_CWORD; i++)); do
    if grep -qxF -e "${COMP_WORDS[i]}" <<<"$commands"; then
      command=${COMP_WORDS[i]}
      break
    fi
  done
  help=$("$program" ${command:+"$command"} --help 2>/dev/null)

  # A flag without a type after its name takes no value.
  if [[ $flag == -* ]] && grep -qE -e "^ *(-[a-z], )?$flag [a-z]|^ *$flag, --[a-z-]* [a-z]" <<<"$help"; then
    case $command/$flag in
      print-node/-o | print-node/--output) _slurmlet_words "json" ;;
      status/-o | status/--output | check/-o | check/--output) _slurmlet_words "text json" ;;
      */--log-level) _slurmlet_words "debug info warning error" ;;
      */--node-ready-follows) _slurmlet_words "daemon slurmd slurm" ;;
      */--node-recreate) _slurmlet_words "always never" ;;
      */--slurm-source)
        if [[ $name == slurmlet-operator ]]; then _slurmlet_words "cli rest"
        else _slurmlet_words "auto operator scontrol"; fi ;;
      */--drain-policy) _slurmlet_words "wait now deadline=" ;;
      */--*-dir) _slurmlet_files -d ;;
      */--*-file | */--*kubeconfig | */--*config | */--metadata | */--slurm-conf | */--sentinel)
        _slurmlet_files -f ;;
    esac
    return
  fi

  if [[ $current == -* ]]; then
    _slurmlet_words "$(grep -oE '^ +(-[a-z], )?--[a-z0-9-]+(, --[a-z-]+)?' <<<"$help" | grep -oE -e '--[a-z0-9-]+')"
  elif [[ -z $command || $flag == help ]]; then
    _slurmlet_words "$commands"
  fi
}

_slurmlet_words() {
  mapfile -t COMPREPLY < <(compgen -W "$1" -- "$current")
}

_slurmlet_files() {
  compopt -o filenames 2>/dev/null
  mapfile -t COMPREPLY < <(compgen "$1" -- "$current")
}

complete -F _slurmlet slurmlet slurmlet-operator
