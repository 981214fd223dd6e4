# Functions that deploy/head, worker and stop share: the run folder, starting a node, ending a node.
# Sourced by these scripts, not run by itself.

run=${DSMS_RUN:-$HOME/.dsms/run}
token=${DSMS_RAY_TOKEN:-$HOME/.dsms/ray_token}
patience=60 # seconds allowed for a node to start
ray=${DSMS_RAY:-ray}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
if ! command -v "$ray" >/dev/null && [[ -x $here/../.venv/bin/ray ]]; then ray=$here/../.venv/bin/ray; fi

fail() {
  echo "$(basename "$0"): $1" >&2
  exit "${2:-1}"
}

# The value of an option, or a message.
value() {
  [[ $# -ge 2 && $2 != --* ]] || fail "$1 wants a value" 2
  echo "$2"
}

number() {
  [[ $2 =~ ^[0-9]+$ ]] || fail "$1: '$2' is not a whole number" 2
}

# Ports that Ray keeps for itself are refused by it only after a while.
port() {
  number "$1" "$2"
  (($2 >= 1024 && $2 <= 65535)) || fail "$1: port $2 is not between 1024 and 65535" 2
  (($2 < 10002 || $2 > 19999)) || fail "$1: port $2 is in 10002-19999, which Ray refuses" 2
}

# Whether anybody listens there, within seconds: Ray itself would wait for minutes.
listens() {
  timeout 3 bash -c 'exec 3<>"/dev/tcp/$0/$1"' "$1" "$2" 2>/dev/null
}

# What ray's commands go by from here on (heaps: see actors/cluster/malloc_trim.py; niceness: Ray starts workers at 15,
# where actors would hardly run on a busy machine); whatever else a script runs (deploy/prometheus: any command) needs no token.
guarded() {
  export MALLOC_ARENA_MAX=2 RAY_worker_niceness=${RAY_worker_niceness:-0} RAY_USAGE_STATS_ENABLED=0 RAY_AUTH_MODE=token RAY_AUTH_TOKEN_PATH=$token
}

make_token() {
  if [[ ! -s $token ]]; then
    mkdir -p "$(dirname "$token")"
    (umask 077 && head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n' >"$token")
  fi
  chmod 600 "$token"
}

# A process is the one written down if it has the same number and began at the same instant: numbers are used again.
began() {
  local stat
  stat=$(cat "/proc/$1/stat" 2>/dev/null) || return 1
  stat=${stat##*) }
  set -- $stat
  echo "${20}"
}

# Those of a session: Ray's workers have process groups of their own, but the session of the node they belong to.
members() {
  local each stat fields
  for each in /proc/[0-9]*; do
    { read -r stat <"$each/stat"; } 2>/dev/null || continue
    fields=(${stat##*) })
    if [[ ${fields[3]} == "$1" && ${fields[0]} != Z ]]; then echo "${each#/proc/}"; fi
  done
}

# Whether the node whose folder is given still runs.
runs() {
  [[ -f $1/pid ]] || return 1
  local pid instant
  read -r pid instant <"$1/pid"
  [[ $(began "$pid" || true) == "$instant" || -n $(members "$pid") ]]
}

# Start a node in a session of its own: `node FOLDER ray-start-options...`; it is ended again if it does not come up.
node() {
  local folder=$1
  shift
  command -v "$ray" >/dev/null || fail "no ray command: pip install 'dsms[ray]', or DSMS_RAY=/path/to/ray"
  if runs "$folder"; then fail "$(basename "$folder") runs already (see $folder); end it with deploy/stop $(basename "$folder")"; fi
  # On a busy machine Ray gives itself up after half a minute; the second time all that it reads is in memory.
  attempt "$folder" "$@" || attempt "$folder" "$@" || fail "Ray did not start: see above"
}

# One try.
attempt() {
  local folder=$1 pid
  shift
  guarded
  export RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S=0 # a node that is told to end does so: nothing moves off it by itself
  rm -rf "$folder" && mkdir -p "$folder"
  local temp
  temp=$(mktemp -d /tmp/dsms-ray.XXXXXX) # short: the sockets in it have names of at most 107 characters
  echo "$temp" >"$folder/temp"
  setsid "$ray" start --block --disable-usage-stats --temp-dir="$temp" "$@" >"$folder/log" 2>&1 </dev/null &
  pid=$!
  echo "$pid $(began $pid)" >"$folder/pid"
  trap 'end "$folder"; exit 130' INT TERM
  local since=$SECONDS
  until grep -q 'Ray runtime started' "$folder/log"; do
    if ! kill -0 "$pid" 2>/dev/null || ((SECONDS - since > patience)); then
      grep -v '^$' "$folder/log" | tail -n 5 >&2 || true
      end "$folder"
      return 1
    fi
    sleep 0.2
  done
  trap - INT TERM
}

# End the nodes whose folders are given: TERM first, KILL after some seconds; only their own sessions.
end() {
  local folder pid instant left i sessions=()
  for folder in "$@"; do
    if runs "$folder"; then
      read -r pid instant <"$folder/pid"
      sessions+=("$pid")
      kill -TERM "$pid" 2>/dev/null || true
    fi
  done
  for ((i = 0; i < 100; i++)); do
    left=$(for pid in ${sessions[@]+"${sessions[@]}"}; do members "$pid"; done)
    if [[ -z $left ]]; then break; fi
    if ((i == 30)); then kill -TERM $left 2>/dev/null || true; fi
    if ((i == 50)); then kill -KILL $left 2>/dev/null || true; fi
    sleep 0.1
  done
  for folder in "$@"; do
    if [[ -f $folder/temp ]]; then rm -rf "$(cat "$folder/temp")"; fi
    rm -rf "$folder"
  done
}
