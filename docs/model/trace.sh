#!/usr/bin/env bash
# Writes runs of lock.pml for the replay in asynclock/internal/machine, one file for each system. Spin
# chooses the order of the steps by a seed. Of MOST seeds (default 200) those runs are kept that together
# have every kind of step that any of them has, and are short. A file has no kinds that the files before
# it have. A run that is too rare for that is found by a search.
#
# It needs spin and gcc, which run.sh installs if it may. It takes some minutes.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
readonly most=${MOST:-200} to=../../asynclock/internal/machine/testdata/model

# steps leaves the lines of a trace: no state of all variables, and nothing after a client's last step.
steps() {
	awk '$1 == "tick" && NF == 1 { ticks++ }
		/ : [A-Z]+ [0-9]+ [0-9]+ [0-9]+$/ && !over[$1] {
			for (; ticks > 0; ticks--) print "tick"
			print
			over[$1] = / : (DONE|DEAD) /
		}' "$1"
}

# kinds prints the kinds of steps in a run: what a client does and sends in which state, and what follows.
# Numbers of owners, tokens and ticks are left out, except those by which a message is judged.
kinds() {
	awk '$1 != "tick" {
		after = did = $0
		sub(/.* : /, "", after); split(after, now, " ")
		sub(/^[0-9]+ /, "", did); sub(/ : .*/, "", did)
		sent = ""
		if (did ~ / > RELEASE/) { sent = did; sub(/.* > RELEASE [0-9]+ [0-9]+/, "release", sent) }
		judged = ""
		if ($2 == "reads") judged = ($3 == now[2]) " " ($4 <= $6) " " $7
		sub(/ > .*/, "", did); gsub(/ [0-9]+/, "", did)
		print did, judged, was[$1], "to", now[1], (now[4] > 0), sent
		was[$1] = now[1] " " (now[4] > 0)
	}' "$1" | sort -u
}

# choose reads lines of a seed, the size of its run, and a kind of step. It prints the seeds to keep: always
# the one next that has the most new kinds for its size. $1 is a file of kinds that are not new.
choose() {
	awk -F '\t' 'FNR == NR { known[$1]; next }
		$3 in known { next }
		{ size[$1] = $2; has[$1, $3]; seeds[$1]; kinds[$3] }
		END {
			for (;;) {
				best = ""; most = 0
				for (s in seeds) {
					new = 0
					for (k in kinds) new += ((s, k) in has)
					if (new > 0 && new / size[s] > most) { best = s; most = new / size[s] }
				}
				if (best == "") exit
				print best
				for (k in kinds) if ((best, k) in has) delete kinds[k]
			}
		}' "$1" - | sort -n
}

# system writes the runs of one system: its name, and its switches.
system() {
	local name=$1 seed
	shift
	for ((seed = 1; seed <= most; seed++)); do
		(cd "$work" && spin -T "-n$seed" -u4000 -DTRACE "$@" "$model" >said) || continue
		steps "$work/said" >"$work/$seed"
		kinds "$work/$seed" | sed "s/^/$seed\t$(wc -c <"$work/$seed")\t/"
	done >"$work/kinds"
	for seed in $(choose "$work/known" <"$work/kinds"); do
		echo "run $* seed=$seed"
		cat "$work/$seed"
	done >"$to/$name.txt"
	cut -f 3 "$work/kinds" >>"$work/known"
	echo "$name: $(grep -c '^run' "$to/$name.txt") runs, $(wc -c <"$to/$name.txt") bytes"
}

# goal writes the run that a search finds: its name, where the run ends, and the switches of its system.
goal() {
	local name=$1 where=$2
	shift 2
	cp "$model" "$work/lock.pml"
	(
		cd "$work"
		spin -a -DTRACE "-DGOAL=$where" "$@" lock.pml >said
		gcc -w -O1 -DSAFETY -DHC4 -DMEMLIM=2000 -o pan pan.c
		./pan -m1000000 -w22 >said
		spin -t -T -DTRACE "-DGOAL=$where" "$@" lock.pml >said
	)
	{ echo "run $* goal=$where" && steps "$work/said"; } >"$to/$name.txt"
	grep -q ' : ' "$to/$name.txt" || { echo "$name: no run gets there" >&2 && return 1; }
	echo "$name: $(wc -c <"$to/$name.txt") bytes"
}

model=$PWD/lock.pml
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$to"
rm -f "$to"/*.txt
echo none >"$work/known"
export LC_ALL=C

system cohort -DK=2 -DRENEWAL=1 -DCLOCK=1 -DLOCAL=1 -DLOSS=2 -DTMAX=30 -DMAXTOK=60
system force -DK=2 -DRENEWAL=1 -DFORCE=1 -DCLOCK=1 -DLOSS=2 -DTMAX=30 -DMAXTOK=60
system faults -DK=3 -DRENEWAL=1 -DSTRAY=1 -DLOSS=4 -DDL=3 -DMAXTOK=20
system forgets -DK=2 -DRENEWAL=1 -DFORGET=1 -DTTL=2 -DG=1 -DLOSS=2 -DMAXTOK=20
goal anew anew -DK=1 -DRENEWAL=1 -DCLOCK=1 -DFORCE=1 -DTTL=2 -DG=1 -DLOSS=0 -DTMAX=3
