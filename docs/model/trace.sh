#!/usr/bin/env bash
# Writes runs of lock.pml and shares.pml for the replay in asynclock/internal/machine, one file for each system. Spin
# chooses the order of the steps by a seed. In the replay each client is by itself. Of the clients in MOST
# runs (default 200) those are kept that together have every kind of step that any of them has, and are
# short. A file has no kinds that the files before it have. What is too rare for that is found by a search.
#
# It needs spin and gcc, which run.sh installs if it may. It takes some minutes.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
readonly most=${MOST:-200} to=../../asynclock/internal/machine/testdata/model

# steps leaves the lines of one client: no state of all variables, and nothing after the client's last step.
steps() {
	awk -v "client=$2" '$1 == "tick" && NF == 1 && began { ticks++ }
		/ : [A-Z]+( [0-9]+)+$/ && $1 == client && !over {
			for (; ticks > 0; ticks--) print "tick"
			sub(/^[0-9]+ /, "")
			print
			began = 1
			over = / : (DONE|DEAD) /
		}' "$1"
}

# kinds prints the kinds of steps of a client: what it does and sends in which state, and what follows.
# Numbers of owners, tokens and ticks are left out, except those by which a message is judged.
kinds() {
	awk '$1 != "tick" {
		after = did = $0
		sub(/.* : /, "", after); split(after, now, " ")
		sub(/ : .*/, "", did)
		sent = ""
		if (did ~ / > RELEASE/) { sent = did; sub(/.* > RELEASE [0-9]+ [0-9]+/, "release", sent) }
		judged = ""
		if ($1 == "reads") judged = ($2 == now[2]) " " ($3 <= $5) " " $6
		sub(/ > .*/, "", did); gsub(/ [0-9]+/, "", did)
		state = now[1] " " (now[4] > 0) " " now[5] " " (now[6] > 1) " " (now[5] == 2 ? now[8] : now[9])
		print did, judged, was, "to", state, sent
		was = state
	}' "$1" | sort -u
}

# choose reads lines of a client, the size of what it does, and a kind of step. It prints the clients to keep:
# always the one next that has the most new kinds for its size. $1 is a file of kinds that are not new.
choose() {
	awk -F '\t' 'FNR == NR { known[$1]; next }
		$3 in known { next }
		{ size[$1] = $2; has[$1, $3]; clients[$1]; kinds[$3] }
		END {
			for (;;) {
				best = ""; most = 0
				for (c in clients) {
					new = 0
					for (k in kinds) new += ((c, k) in has)
					if (new > 0 && new / size[c] > most) { best = c; most = new / size[c] }
				}
				if (best == "") exit
				print best
				for (k in kinds) if ((best, k) in has) delete kinds[k]
			}
		}' "$1" - | sort -V
}

# system writes the runs of one system: its name, and its switches.
system() {
	local name=$1 seed client
	shift
	rm -f "$work"/run.*
	for ((seed = 1; seed <= most; seed++)); do
		(cd "$work" && spin -T "-n$seed" -u4000 -DTRACE "$@" "$models/$model.pml" >said) || continue
		for client in 0 1 2; do
			steps "$work/said" "$client" >"$work/run.$seed.$client"
			kinds "$work/run.$seed.$client" | sed "s/^/$seed.$client\t$(wc -c <"$work/run.$seed.$client")\t/"
		done
	done >"$work/kinds"
	for client in $(choose "$work/known" <"$work/kinds"); do
		echo "run $model $* seed=$client"
		cat "$work/run.$client"
	done >"$to/$name.txt"
	cut -f 3 "$work/kinds" >>"$work/known"
	echo "$name: $(grep -c '^run' "$to/$name.txt") clients, $(wc -c <"$to/$name.txt") bytes"
}

# goal writes the run that a search finds: its name, where the run ends, and the switches of its system.
goal() {
	local name=$1 where=$2
	shift 2
	cp "$models/lock.pml" "$work"
	(
		cd "$work"
		spin -a -DTRACE "-DGOAL=$where" "$@" lock.pml >said
		gcc -w -O1 -DSAFETY -DHC4 -DMEMLIM=2000 -o pan pan.c
		./pan -m1000000 -w22 >said
		spin -t -T -DTRACE "-DGOAL=$where" "$@" lock.pml >said
	)
	{ echo "run lock $* goal=$where" && steps "$work/said" 0; } >"$to/$name.txt"
	grep -q ' : ' "$to/$name.txt" || { echo "$name: no run gets there" >&2 && return 1; }
	echo "$name: $(wc -c <"$to/$name.txt") bytes"
}

models=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$to"
rm -f "$to"/*.txt
echo none >"$work/known"
export LC_ALL=C

model=lock
system cohort -DK=2 -DRENEWAL=1 -DCLOCK=1 -DLOCAL=1 -DLOSS=2 -DTMAX=30 -DMAXTOK=60
system force -DK=2 -DRENEWAL=1 -DFORCE=1 -DCLOCK=1 -DLOSS=2 -DTMAX=30 -DMAXTOK=60
system faults -DK=3 -DRENEWAL=1 -DSTRAY=1 -DLOSS=4 -DDL=3 -DMAXTOK=20
system forgets -DK=2 -DRENEWAL=1 -DFORGET=1 -DTTL=2 -DG=1 -DLOSS=2 -DMAXTOK=20
goal anew anew -DK=1 -DRENEWAL=1 -DCLOCK=1 -DFORCE=1 -DTTL=2 -DG=1 -DLOSS=0 -DTMAX=3

model=shares
echo none >"$work/known"
readonly two=(-DTTL=2 -DG=1 -DRENEWAL=1 -DJOIN=1 -DMAXTOK=20)
system readers "${two[@]}" -DDOWN=1 -DLEAVES=1 -DLOSS=2
system readers_forgotten "${two[@]}" -DFORGET=1 -DLOSS=1
system permits "${two[@]}" -DBLOCK -DLOSS=2
system permits_set "${two[@]}" -DBLOCK -DSETS=2 -DLOSS=1
system permits_too_many "${two[@]}" -DTAKEN -DSETS=2 -DLOSS=1
