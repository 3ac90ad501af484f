#!/usr/bin/env bash
# Checks lock.pml, shares.pml, notes.pml, quorum.pml and quorum_notes.pml: each small system
# exhaustively, then each broken rule, which has to be found. It fails if a sound system breaks a
# promise, if a search does not end, or if a broken rule goes unnoticed. The names of searches in
# shares.pml begin with "shares:", those in notes.pml with "notes:", those in quorum.pml with
# "quorum:", those in quorum_notes.pml with "quorum notes:".
#
#   docs/model/run.sh            everything but what takes minutes
#   docs/model/run.sh long       that
#   docs/model/run.sh W4 served  what has one of these words in its name
#   docs/model/run.sh shares:    those of shares.pml
#
# It needs spin and a C compiler, and installs Debian's if it may. 2 GB of memory
# and LIMIT seconds (default 300) for each search are enough; there are AT_ONCE of
# them at a time (default 2).
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")" || exit
readonly limit=${LIMIT:-300} at_once=${AT_ONCE:-2}

missing=()
for tool in spin gcc; do
	command -v "$tool" >/dev/null || missing+=("$tool")
done
if ((${#missing[@]} > 0)); then
	root=()
	((EUID == 0)) || root=(sudo -n)
	"${root[@]}" apt-get update -q >/dev/null &&
		"${root[@]}" apt-get install -qy --no-install-recommends "${missing[@]}" libc6-dev >/dev/null
	for tool in "${missing[@]}"; do
		command -v "$tool" >/dev/null ||
			{ echo "model: $tool is missing and can't be installed here; on Debian: apt-get install spin gcc libc6-dev" >&2 && exit 1; }
	done
fi

all=$(mktemp -d) || exit
# Each check is a process group, so that none outlives this script.
set -m
trap 'for check in $(jobs -rp); do kill -- "-$check"; done; rm -rf "$all"' EXIT

# beside runs a check beside others, in a directory of its own, $work. What it has to say
# it says at once. If it fails there is a file $all/failed.
checks=0
beside() {
	while (($(jobs -rp | wc -l) >= at_once)); do wait -n; done
	checks=$((checks + 1))
	(
		work=$all/$checks
		mkdir "$work"
		said=$("$@") || touch "$all/failed"
		echo "$said"
	) &
}

# model_of says which file a search of that name is in.
model_of() {
	case $1 in
	shares:*) echo shares.pml ;;
	notes:*) echo notes.pml ;;
	quorum:*) echo quorum.pml ;;
	quorum\ notes:*) echo quorum_notes.pml ;;
	*) echo lock.pml ;;
	esac
}

# search builds and runs one checker of $model. What it said is in $work/pan.log.
search() {
	cp "$model" "$work/" && cd "$work" || return
	spin -a "$@" "$model" >spin.log 2>&1 || { cat spin.log && return 1; }
	# HC4 keeps 96 bits of a state's hash. For tables below 2^33 slots pan.c takes a hash of 32 bits, and then up to
	# four states of a hundred were taken for others. With its other hash the counts are those without HC4.
	grep -q 'hasher = d_sfh;' pan.c || { echo "model: this Spin's pan.c chooses its hash otherwise; see search" && return 1; }
	sed -i 's/hasher = d_sfh;/hasher = d_hash;/' pan.c
	gcc -w -O1 -DSAFETY -DHC4 -DMEMLIM=2000 -o pan pan.c || return
	timeout --foreground -s INT "$limit" ./pan -m1000000 -w22 >pan.log 2>&1
	grep -q 'errors: ' pan.log || { cat pan.log && return 1; }
}

wanted=("$@")
chosen() {
	local word
	((${#wanted[@]} == 0)) && [[ $1 != long:* ]] && return
	for word in "${wanted[@]}"; do
		[[ $1 == *"$word"* ]] && return
	done
	return 1
}

report() {
	local states depth
	states=$(sed -nE 's/^ *([0-9.e+]+) states, stored.*/\1/p' "$work/pan.log")
	depth=$(sed -nE 's/.*at depth ([0-9]+)\)$/, after \1 steps/p' "$work/pan.log")
	printf '%-4s %10.0f states %4d s  %s%s\n' "$1" "$states" "$((SECONDS - begin))" "$2" "$depth"
}

# sound: nothing may be found in it.
sound() { ! chosen "$1" || beside find_nothing "$@"; }

find_nothing() {
	local name=$1 begin=$SECONDS model
	model=$(model_of "$name")
	shift
	if ! (search "$@") || ! grep -q 'errors: 0' "$work/pan.log" || grep -q 'Search not completed' "$work/pan.log"; then
		report FAIL "$name"
		grep -E 'pan:|Warning' "$work/pan.log"
		# The steps that lead there; the whole of it is long.
		(cd "$work" && [[ -f $model.trail ]] && spin -t -p -g "$@" "$model" 2>/dev/null | tail -n 60)
		return 1
	fi
	report ok "$name"
}

# broken: what the first argument says must be found violated.
broken() { ! chosen "$2 ($3)" || beside find_it "$@"; }

find_it() {
	local what=$1 name="$2 ($3)" begin=$SECONDS fault=$3 model
	model=$(model_of "$name")
	shift 3
	if ! (search "-DFAULT=$fault" "$@") || ! grep -qE "assertion violated.*($what)" "$work/pan.log"; then
		report MISS "$name"
		grep -E 'pan:|Warning' "$work/pan.log"
		return 1
	fi
	report ok "$name"
}

# What each promise looks like in the message of a violation.
readonly exclusive='trust\[0\]' rising='i>top' nothing_left='over\[|whose\[c\]' below='i<=ceiling' served='waited\[i\]' goes_on='trust\[c\]'
readonly believed='>mark\['

# The same in shares.pml. overlap is H1 and H2, beyond is H3, order is H4.
readonly overlap='has\[j\]' common='tok\[j\]' beyond='used<=' order='tok\[c\]>' queue='ticket\[j\]>' ignored='number\[c\]==h1'
readonly waits='writers==0' unowned='weight\[j\]<=have' greedy='weight\[head\]==' mate='st\[2\]==' keeps='trust\[c\]==0'
readonly allowed='used\+weight\[head\]' excess='excess<='

# The same in notes.pml.
readonly holder='owner!=0' later='known_seq' writes='renewed\[' decided='owner!=own\[c\]'

# The same in quorum.pml.
readonly one_majority='!\(\(\(\(st\[0\]' revived='ended\[0\]' left_behind='withdrawn' token_order='tok\[c\]>top' waits_long='waited\[j\]'

# The same in quorum_notes.pml.
readonly stays='tok\[c\]>=floor' can_be_read='knows\[0\]'

one=(-DCRASH=1 -DRENEWAL=1 -DSTRAY=1 -DMAXTOK=4)
two=(-DK=2 -DK0=1 -DLOSS=0 -DMAXTOK=4)
late=(-DK=2 -DK0=1 -DLOSS=1 -DSTRAY=1 -DTTL=2 -DG=1 -DMAXTOK=3)
cohort=(-DCLOCK=1 -DLOCAL=2 -DTTL=2 -DG=1 -DMAXTOK=12 -DRENEWAL=1)
forgetful=(-DFORGET=1 -DRENEWAL=1 -DTTL=2 -DG=1)
begun=(-DFORGET=1 -DTTL=2 -DG=1 -DN=3 -DBEGUN=1 -DMAXTOK=4)
ended=("${forgetful[@]}" -DENDED=1)
ended_begun=("${begun[@]}" -DENDED=1 -DLOSS=0)
lively=(-DLIVE=1 -DRENEWAL=1 -DTTL=4 -DG=3 -DDL=3 -DMAXTOK=200)
distant=("${lively[@]}" -DK=2 -DLOSS=0 -DDISTANT=4)
given_up=(-DVACANCY=1 -DK=2 -DK0=1 -DLOSS=0 -DSTRAY=1 -DTTL=2 -DG=1)
clocked=(-DVACANCY=1 "${cohort[@]}")
replaced=(-DVACANCY=1 "${forgetful[@]}")
left=(-DVACANCY=1 "${begun[@]}")
any=(-DLEAVES=1 -DLOSS=1 -DSTRAY=1 -DMAXTOK=4)
quiet=(-DLIVE=1 -DTTL=3 -DG=2 -DDL=2 -DMAXTOK=200 -DRENEWAL=1)
block=("${quiet[@]}" -DBLOCK -DN=2 -DLOSS=2 -DSTRAY=1 -DHOLDS=2)
replaced_once=(-DFORGET=1 -DMAXTOK=4)
older=("${replaced_once[@]}" -DBEGUN=1 -DRENEWAL=1 -DSTRAY=1)
set=(-DPERMITS -DSETS=1)
restarted=(-DFORGET=1)
tokens=(-DLATE=0 -DTOKENS=5)
short_cut=(-DLATE=0 -DTOKENS=7 -DSHORT=2 -DAHEAD=2)
majorities=(-DLIVE=1 -DLATE=0 -DTTL=3 -DGT=2)
once_empty=(-DLEASES=2 -DRESTARTS=1)
twice_empty=(-DLEASES=1 -DRESTARTS=2)

echo "What is sound:"
sound 'each client asks once, anything may go wrong' "${one[@]}"
sound 'one client asks again, everything may be late' "${two[@]}"
sound 'one client asks again, something given up arrives' "${late[@]}"
sound 'cohort handoff, clients die' "${cohort[@]}" -DCRASH=1
sound 'cohort handoff, the counter is ahead' "${cohort[@]}" -DCRASH=1 -DAHEAD=4
sound 'cohort handoff, a key taken by force' "${cohort[@]}" -DFORCE=1 -DTMAX=3
sound 'the server forgets, and its clock lags' "${forgetful[@]}" -DLOSS=0 -DMAXTOK=4 -DSKEW=1
sound 'the server forgets, something given up arrives' "${forgetful[@]}" -DLOSS=1 -DSTRAY=1 -DMAXTOK=3
sound 'long: the server forgets, a first release hands on' "${begun[@]}" -DLOSS=2
sound 'the server forgets, a first release hands on, the clock lags' "${begun[@]}" -DLOSS=1 -DSKEW=1
sound 'the server forgets, a first release hands on, leases are renewed' "${begun[@]}" -DLOSS=0 -DSKEW=1 -DRENEWAL=1
sound 'served: two ask twice, one dies, a message is lost' "${lively[@]}" -DK=2 -DCRASH=1 -DLOSS=1 -DBOUND=7
sound 'served: three, of which two die' "${lively[@]}" -DN=3 -DCRASH=2 -DLOSS=0 -DBOUND=10
sound 'served: one beside another whose answers come too late' "${distant[@]}" -DBOUND=4
sound 'ended by hand, and the clock lags' "${ended[@]}" -DLOSS=0 -DMAXTOK=6 -DSKEW=1
sound 'ended by hand, something given up arrives' "${ended[@]}" -DLOSS=0 -DSTRAY=1 -DMAXTOK=5 -DSKEW=1
sound 'ended by hand, a message is lost, something given up arrives' "${ended[@]}" -DLOSS=1 -DSTRAY=1 -DMAXTOK=4
sound 'ended by hand, a first release hands on, the clock lags' "${ended_begun[@]}" -DMAXTOK=6 -DSKEW=1
sound 'ended by hand, a first release hands on, something given up arrives' "${ended_begun[@]}" -DMAXTOK=5 -DSTRAY=1
sound 'ended by hand, a first release hands on, leases are renewed' "${ended_begun[@]}" -DMAXTOK=5 -DRENEWAL=1
sound 'ended by hand: served: one dies, a message is lost' "${lively[@]}" -DFORGET=1 -DENDED=1 -DCRASH=1 -DLOSS=1 -DBOUND=7
sound 'vacancy: each client asks once, anything may go wrong' -DVACANCY=1 "${one[@]}"
sound 'vacancy: one client asks again, something given up arrives' "${given_up[@]}" -DMAXTOK=5
sound 'vacancy: cohort handoff, clients die, something given up arrives' "${clocked[@]}" -DCRASH=1 -DSTRAY=1
sound 'vacancy: cohort handoff, its token is ahead of the clock' "${clocked[@]}" -DCRASH=1 -DAHEAD=4 -DTMAX=7
sound 'vacancy: cohort handoff, a key taken by force' "${clocked[@]}" -DFORCE=1
sound 'vacancy: the server forgets, and its clock lags' "${replaced[@]}" -DLOSS=0 -DMAXTOK=5 -DSKEW=1
sound 'vacancy: the server forgets, something given up arrives' "${replaced[@]}" -DLOSS=1 -DSTRAY=1 -DMAXTOK=4
sound 'vacancy: the server forgets, a first release leaves one in the grace' "${left[@]}" -DLOSS=0 -DSKEW=1
sound 'vacancy: ended by hand, and the clock lags' -DVACANCY=1 "${ended[@]}" -DLOSS=0 -DMAXTOK=6 -DSKEW=1
sound 'vacancy: ended by hand, something given up arrives' -DVACANCY=1 "${ended[@]}" -DLOSS=0 -DSTRAY=1 -DMAXTOK=5 -DSKEW=1
sound 'vacancy: ended by hand, a first release hands on' -DVACANCY=1 "${ended_begun[@]}" -DMAXTOK=6
sound 'vacancy: ended by hand, who takes one needs no permission' -DVACANCY=1 "${ended[@]}" -DLOSS=0 -DSTRAY=1 -DMAXTOK=5 -DSKEW=1 -DFAULT=END_VACANT
sound 'vacancy: served: two ask twice, one dies, a message is lost' -DVACANCY=1 "${lively[@]}" -DK=2 -DCRASH=1 -DLOSS=1 -DBOUND=7
sound 'shares: two readers and a writer, anything may go wrong' "${any[@]}" -DDOWN=1
sound 'shares: two readers and a writer, leases are renewed, readers join' -DLEAVES=1 -DDOWN=1 -DRENEWAL=1 -DJOIN=1 -DMAXTOK=4
sound 'shares: a reader, a permit and a writer, anything may go wrong' "${any[@]}" -DMIXED
sound 'shares: permits, anything may go wrong' "${any[@]}" -DPERMITS
sound 'shares: permits, clients differ about the limit' "${any[@]}" -DPERMITS -DDIFFER
sound 'shares: permits, one grant for two leases' -DPERMITS -DGREEDY -DLEAVES=1 -DRENEWAL=1 -DMAXTOK=4
sound 'shares: the server forgets readers' "${replaced_once[@]}" -DDOWN=1
sound 'shares: the server forgets permits' "${replaced_once[@]}" -DPERMITS
sound 'shares: the server forgets, leases are renewed' -DFORGET=1 -DRENEWAL=1 -DMAXTOK=3
sound 'shares: the server forgets, late requests, its clock lags' "${older[@]}" -DSKEW=1
sound 'shares: the server forgets, late requests, readers join' "${older[@]}" -DTTL=3 -DJOIN=1
sound 'shares: served: two readers and a writer, readers join, one dies' "${quiet[@]}" -DJOIN=1 -DLEAVES=1 -DLOSS=1 -DCRASH=1 -DBOUND=9
sound 'shares: served: a client reads and wants to write' "${quiet[@]}" -DJOIN=1 -DMATE=1 -DLOSS=1 -DBOUND=5
sound 'shares: served: a step grants one, a downgrade' "${quiet[@]}" -DBATCH=1 -DDOWN=1 -DLEAVES=1 -DLOSS=1 -DBOUND=3
sound 'shares: served: permits, one dies' "${quiet[@]}" -DPERMITS -DLEAVES=1 -DLOSS=1 -DCRASH=1 -DBOUND=6
sound 'shares: served: permits, clients differ about the limit' "${quiet[@]}" -DPERMITS -DDIFFER -DLEAVES=1 -DLOSS=1 -DCRASH=1 -DBOUND=4
sound 'shares: served: three permits are given back one by one' "${block[@]}" -DBOUND=4
sound 'shares: the number is set, nothing is lost' "${set[@]}" -DMAXTOK=4
sound 'shares: the number is set, clients differ, leases are renewed' "${set[@]}" -DDIFFER -DRENEWAL=1 -DMAXTOK=3
sound 'shares: served: the number is set' "${set[@]}" "${quiet[@]}" -DLOSS=1 -DBOUND=3
sound 'shares: served: the number is set beside a writer' -DTAKEN -DSETS=1 "${quiet[@]}" -DLOSS=1 -DBOUND=3
sound 'shares: served: the number is set, permits pass inside a client' "${set[@]}" "${quiet[@]}" -DJOIN=1 -DEXCESS=3
sound 'notes: two clients, requests are late'
sound 'notes: three clients, a request is late' -DN=3 -DLATE=1 -DGRANTS=3
sound 'notes: the server forgets the holding' -DFORGET=1 -DGRANTS=3
sound 'quorum: nobody is late, TTL 3' -DLATE=0 -DTTL=3 -DGT=2
sound 'quorum: a request is late, TTL 3' -DTTL=3 -DGT=2
sound 'quorum: a node is restarted empty' "${restarted[@]}"
sound 'quorum: a node is restarted empty, TTL 3' "${restarted[@]}" -DTTL=3 -DGT=1
sound 'quorum: tokens, a request is late' -DTOKENS=3
sound 'quorum: tokens, nobody is late' -DLATE=0 -DTOKENS=6
sound 'quorum: tokens, a node is restarted empty' "${tokens[@]}" -DFORGET=1
sound 'quorum: tokens, a vote taken again counts without the token' "${tokens[@]}" -DFAULT=OLD_TOKEN
sound 'quorum: tokens, without a write-back of what is near' "${short_cut[@]}"
sound 'quorum: served: a node dies, a client dies, another is cut off' "${majorities[@]}" -DBOUND=3
sound 'quorum notes: no node is restarted' -DLEASES=2
sound 'quorum notes: a restarted node is silent until the note is written to it' "${once_empty[@]}"
sound 'quorum notes: two nodes in turn, each silent until the note is written to it' "${twice_empty[@]}"
sound 'quorum notes: nodes that come back empty, if the note is read in each grace' "${once_empty[@]}" -DFAULT=IN_GRACE

wait
echo "What is broken and has to be found:"
broken "$exclusive" 'grant messages are believed however old they are: W4' NO_W4 "${two[@]}"
broken "$exclusive" 'trust counts from the receipt of a reply: W3' RECEIPT_REPLY "${two[@]}"
broken "$exclusive" 'trust counts from the receipt of a message: W5' RECEIPT_MSG "${two[@]}"
broken "$exclusive" 'a holder ignores its trust deadline' NO_DEADLINE "${two[@]}"
broken "$exclusive" 'a repeated acquire says granted and leaves the TTL' OLD_TTL "${one[@]}" -DRENEWAL=0
broken "$nothing_left" 'uncertain withdrawals are not remembered' NO_GONE "${one[@]}"
broken "$nothing_left" 'a release after a grant is never uncertain' SURE "${one[@]}"
broken "$nothing_left" 'a grant that comes too late is given back as if no request could follow: W3' LATE_SURE "${one[@]}"
broken "$nothing_left|$exclusive" 'a release does not check which owner holds the key' NO_OWNER "${two[@]}"
broken "$nothing_left" 'renew brings a missing holding back' REVIVE "${one[@]}"
broken "$exclusive|$rising" 'a waiter is notified before it is found unreachable' TOLD -DK=2 -DK0=1 -DLOSS=1 -DMAXTOK=4
broken "$rising" 'a release does not say which token was used last' NO_WRITEBACK "${cohort[@]}"
broken "$rising" 'local passing ignores how much time has passed' SPEND "${cohort[@]}" -DCRASH=1
broken "$rising" 'local passing ignores that the counter is ahead' UNCLOCKED "${cohort[@]}" -DCRASH=1 -DAHEAD=4
broken "$below" 'force does not raise the counter' NO_RAISE "${cohort[@]}" -DFORCE=1 -DTMAX=3
broken "$exclusive" 'a server that has forgotten grants at once' NO_GRACE_AT_ALL "${forgetful[@]}" -DRENEWAL=0 -DLOSS=0 -DMAXTOK=4
broken "$exclusive" 'the grace is shorter than the longest TTL' SHORT_GRACE "${forgetful[@]}" -DRENEWAL=0 -DLOSS=0 -DMAXTOK=4
broken "$exclusive|$rising" 'a waiter that finds its own record in the grace is granted the key' GRACE_OWN "${forgetful[@]}" -DLOSS=1 -DMAXTOK=4 -DSKEW=1
broken "$exclusive|$rising|$goes_on" 'a waiter believes an older grant after a loss' OLD_MARK -DFORGET=1 -DRENEWAL=1 -DTTL=2 -DG=2 -DK=2 -DK0=1 -DLOSS=0 -DMAXTOK=4
broken "$goes_on" 'holders do not write anew what is missing' NO_REASSERT "${forgetful[@]}" -DLOSS=0 -DMAXTOK=4
broken "$nothing_left" 'a release in the grace is remembered only if uncertain' NO_GRACE_GONE "${forgetful[@]}" -DLOSS=1 -DSTRAY=1 -DMAXTOK=3
broken "$exclusive" 'any release hands on in the grace' HAND_ON_ANY "${begun[@]}" -DLOSS=1
broken "$exclusive" 'a release that was sent before hands on in the grace' HAND_ON_TWICE "${begun[@]}" -DLOSS=2
broken "$exclusive" 'a release hands on in the grace a holding that is about to end' HAND_ON_LATE "${begun[@]}" -DLOSS=1 -DSKEW=1
broken "$exclusive" 'a release hands on in the grace a lease that is trusted no more' HAND_ON_ENDED "${begun[@]}" -DLOSS=0 -DRENEWAL=1
broken "$nothing_left" 'a release hands on in the grace while a renewal is on its way' HAND_ON_DOUBT "${begun[@]}" -DLOSS=1 -DRENEWAL=1 -DSTRAY=1
broken "$exclusive" 'ended by hand although something was lost' END_LOST "${ended[@]}" -DRENEWAL=0 -DLOSS=0 -DMAXTOK=6 -DSKEW=1
broken "$exclusive" 'ended by hand, and the end was about another history' END_OTHER "${ended[@]}" -DRENEWAL=0 -DLOSS=0 -DMAXTOK=6 -DSKEW=1
broken "$exclusive" 'ended by hand, and the clock is ahead' END_AHEAD "${ended[@]}" -DRENEWAL=0 -DLOSS=0 -DMAXTOK=6 -DSKEW=1
broken "$exclusive" 'ended by hand, and keys are granted after as long as the clock is ahead' END_WAITS "${ended[@]}" -DRENEWAL=0 -DLOSS=0 -DMAXTOK=6 -DSKEW=1
broken "$nothing_left" 'ended by hand, and holdings are still written anew' END_ANEW "${ended[@]}" -DLOSS=0 -DSTRAY=1 -DMAXTOK=5 -DSKEW=1
broken "$believed" 'ended by hand, and tokens do not begin above the mark' END_LOW "${ended[@]}" -DLOSS=0 -DMAXTOK=6 -DSKEW=1
broken "$believed" 'ended by hand, and who queues then has no flag' END_NO_FLAG "${ended[@]}" -DLOSS=0 -DMAXTOK=6 -DSKEW=1
broken "$served" 'served: waiters trust that a message comes: W9' NO_HEARTBEAT "${lively[@]}" -DK=2 -DLOSS=1 -DBOUND=7
broken "$served" 'served: acquire passes no key on to the next waiter' NO_PASS "${lively[@]}" -DN=3 -DCRASH=2 -DLOSS=0 -DBOUND=10
broken "$served" 'served: a grant that comes too late is asked for again: W3' KEEPS_ASKING "${distant[@]}" -DBOUND=4
broken "$nothing_left" 'vacancy: it stays when a withdrawn owner is remembered' VACANT_GONE "${given_up[@]}" -DMAXTOK=4
broken "$nothing_left" 'vacancy: a release leaves one although a withdrawn owner is remembered' VACANT_BESIDE "${given_up[@]}" -DMAXTOK=5
broken "$exclusive" 'vacancy: take does not look at the history' ANY_HISTORY "${replaced[@]}" -DLOSS=0 -DMAXTOK=5 -DSKEW=1
broken "$exclusive" 'vacancy: a client takes before it knows of the end of the grace' EARLY_PERMIT "${replaced[@]}" -DLOSS=0 -DMAXTOK=5 -DSKEW=1
broken "$nothing_left" 'vacancy: take does not look at the queue where there is none' TAKE_QUEUE "${given_up[@]}" -DMAXTOK=5
broken "$nothing_left" 'vacancy: take does not look at withdrawn owners where there is none' TAKE_GONE "${given_up[@]}" -DMAXTOK=4
broken "$rising" 'vacancy: take does not look at the counter where there is none' TAKE_COUNTER "${clocked[@]}" -DCRASH=1 -DAHEAD=4 -DTMAX=6
broken "$rising" 'vacancy: take does not compare its token with that of a vacancy' TAKE_LOW "${clocked[@]}" -DCRASH=1
broken "$rising" 'vacancy: it has the token of the grant, not the last one used' VACANT_FIRST "${clocked[@]}" -DCRASH=1
broken "$rising" 'vacancy: its token does not count for the next one' COUNTER_ONLY "${clocked[@]}" -DCRASH=1
broken "$nothing_left" 'vacancy: a release leaves one although somebody waits' VACANT_QUEUE -DVACANCY=1 "${lively[@]}" -DK=2 -DLOSS=0 -DBOUND=7
broken "$nothing_left" 'vacancy: it stays when somebody queues in the grace' VACANT_JOIN "${replaced[@]}" -DLOSS=0 -DMAXTOK=5 -DSKEW=1
broken "$rising" 'vacancy: ended by hand, and tokens do not begin above the mark' END_LOW -DVACANCY=1 "${ended[@]}" -DLOSS=0 -DMAXTOK=6 -DSKEW=1
broken "$rising" 'vacancy: ended by hand, and free keys are taken before the clock is past the mark' END_PERMIT -DVACANCY=1 "${ended[@]}" -DLOSS=0 -DMAXTOK=6 -DSKEW=1
broken "$waits" 'shares: a withdrawal does not serve' NO_SERVE "${quiet[@]}" -DLEAVES=1
broken "$queue" 'shares: serve does not stop at a head that does not fit, readers' OVERTAKE
broken "$queue" 'shares: serve does not stop at a head that does not fit, permits' OVERTAKE -DPERMITS
broken "$waits" 'shares: serve stops after its number of grants without a wake-up' NO_WAKE "${quiet[@]}" -DBATCH=1
broken "$served" 'shares: a closed tenure admits' CLOSED_ADMITS "${quiet[@]}" -DJOIN=1 -DBOUND=9
broken "$mate" 'shares: a tenure is closed by remote writers only' REMOTE_ONLY "${quiet[@]}" -DJOIN=1 -DMATE=1
broken "$overlap" 'shares: trust of who joins counts from the join' JOIN_TRUST -DJOIN=1 -DMIXED
broken "$common" 'shares: the fence is drawn for each member' FENCE_EACH
broken "$order" 'shares: the fence is not drawn anew after a writer' FENCE_OLD
broken "$ignored" 'shares: W4 compares the fence' MARK_FENCE -DLEAVES=1
broken "$overlap" 'shares: grant messages are believed however old they are: W4' NO_W4
broken "$unowned" 'shares: a Rest raises' REST_RAISES "${block[@]}"
broken "$unowned" 'shares: a Rest without an answer is not sent again' REST_ONCE "${block[@]}"
broken "$unowned" 'shares: a renewal raises' RENEW_RAISES "${block[@]}"
broken "$waits" 'shares: a Rest does not serve' NO_SERVE_REST "${quiet[@]}" -DDOWN=1
broken "$order" 'shares: a downgrade keeps the token' DOWN_FENCE -DDOWN=1
broken "$greedy" 'shares: Extra is granted although others wait' EXTRA_ANY -DPERMITS -DGREEDY
broken "$waits" 'shares: an expired member stays while others last' STICKY "${quiet[@]}" -DPERMITS -DCRASH=1
broken "$waits" 'shares: an acquire does not serve where a group holds the key' NO_SERVE_ACQUIRE "${quiet[@]}" -DCRASH=1
broken "$served" 'shares: a member whose message was lost hears of no waiter' RENEW_DEAF "${quiet[@]}" -DJOIN=1 -DLOSS=1 -DBOUND=9
broken "$overlap|$order" 'shares: a writer fits beside readers' FIT_ALL
broken "$overlap|$order" 'shares: permits fit beside readers' FIT_MIXED -DMIXED
broken "$beyond" 'shares: the limit of who asks is compared, not the least' LIMIT_ASKER -DPERMITS -DDIFFER
broken "$waits" 'shares: the least limit stays when its holder leaves' LEAST_STAYS "${quiet[@]}" -DPERMITS -DDIFFER
broken "$beyond" 'shares: the grace is shorter than the longest TTL' SHORT_GRACE "${replaced_once[@]}" -DPERMITS
broken "$common|$order|$overlap" 'shares: readers are granted in the grace' GRANT_IN_GRACE "${replaced_once[@]}"
broken "$keeps" 'shares: a writer is not written anew over older readers' KEEP_OLDER "${older[@]}"
broken "$order" 'shares: readers from before the loss are joined, with their token' OLD_GROUP "${older[@]}" -DTTL=3
broken "$order|$common" 'shares: readers from before the loss are joined, with a new token' NEW_FENCE "${older[@]}" -DJOIN=1
broken "$order" 'shares: what passes inside a client has rising tokens, too' ORDER_INSIDE -DPERMITS -DJOIN=1
broken "$allowed" 'shares: the number that is set does not count' SET_IGNORED "${set[@]}"
broken "$allowed" 'shares: the number that is set counts from the next grant' SET_ALL_FREE "${set[@]}"
broken "$waits" 'shares: the number that is set does not override those of the clients' SET_LEAST "${set[@]}" "${quiet[@]}" -DLOSS=1
broken "$waits" 'shares: a number that is set does not serve' SET_NO_SERVE "${set[@]}" "${quiet[@]}" -DLOSS=1
broken "$waits" 'shares: a head that wants too much stays in the queue' TOO_MUCH_STAYS "${set[@]}" "${quiet[@]}" -DLOSS=1
broken "$served" 'shares: who wants too much is not told' TOO_MUCH_WAITS "${set[@]}" "${quiet[@]}" -DLOSS=1 -DBOUND=3
broken "$excess" 'shares: a block from under a larger number passes permits on' STALE_PASSES "${set[@]}" "${quiet[@]}" -DJOIN=1 -DEXCESS=3
broken "$holder" 'notes: the owner is not compared' NO_OWNER
broken "$later" 'notes: tokens are not compared' NO_TOKEN
broken "$later" 'notes: the numbers of a lease are not compared' NO_SEQ
broken "$writes" 'notes: a repetition is taken for an older note' SAME_SEQ
broken "$writes" 'notes: calls for one lease do not wait for each other' SIDE_BY_SIDE
broken "$decided" 'notes: a refusal is taken for a loss' REFUSED_IS_LOST -DFORGET=1
broken "$one_majority" 'quorum: a claim is trusted until its last vote ends' DEADLINE_MAX -DLATE=0
broken "$one_majority" 'quorum: a late answer revives a dead vote' REVIVE "${restarted[@]}"
broken "$one_majority" 'quorum: dead votes are renewed' RENEW_DEAD "${restarted[@]}" -DLATE=0
broken "$revived" 'quorum: a claim whose majority has ended takes votes again' RETAKE_LATE -DLATE=0
broken "$revived" 'quorum: an answer counts after the majority has ended' LATE_VOTE
broken "$one_majority" 'quorum: a later vote has the owner id of the one before' SAME_ID
broken "$left_behind" 'quorum: a release is never uncertain' OVERTAKE
broken "$one_majority" 'quorum: a message of a handoff counts as a vote' EVENT_COUNTS -DLATE=0
broken "$one_majority" 'quorum: a vote counts from the receipt of the answer' RECEIPT
broken "$one_majority" 'quorum: a restarted node grants at once' NO_GRACE "${restarted[@]}" -DLATE=0
broken "$one_majority" 'quorum: the grace is shorter than the TTL' SHORT_GRACE "${restarted[@]}" -DLATE=0
broken "$token_order" 'quorum: a lease begins without a write-back of its token' NO_WRITEBACK "${tokens[@]}"
broken "$token_order" 'quorum: a write-back counts before it is answered' UNSAID -DTOKENS=4
broken "$token_order" 'quorum: the tokens of a restarted node begin anew' NO_FLOOR "${tokens[@]}" -DFORGET=1
broken "$token_order" 'quorum: no write-back although the token is not of the clock' SHORT_ANY "${short_cut[@]}"
broken "$token_order" 'quorum: no write-back although only a written token is near' SHORT_WRITTEN "${short_cut[@]}"
broken "$token_order" 'quorum: no write-back, and a release does not say the token' SHORT_RELEASE "${short_cut[@]}"
broken "$waits_long" 'quorum: a claim without the door keeps its votes' KEEP_VOTES "${majorities[@]}" -DBOUND=20
broken "$waits_long" 'quorum: a claim that reaches no majority keeps its votes' KEEP_MINORITY "${majorities[@]}" -DBOUND=20
broken "$waits_long" 'quorum: a door stays when an earlier node answers again' STICKY_DOOR "${majorities[@]}" -DBOUND=20
broken "$stays" 'quorum notes: a reader does not write back' NO_WRITEBACK -DLEASES=2
broken "$stays" 'quorum notes: a write to a minority is acknowledged' MINORITY -DLEASES=2
broken "$stays" 'quorum notes: a node takes an older note' OLDER -DLEASES=2
broken "$stays" 'quorum notes: a call outlasts half a grace' LONG_CALLS "${once_empty[@]}"
broken "$stays" 'quorum notes: why there are none: a node comes back empty' AS_EMPTY "${once_empty[@]}"
broken "$stays" 'quorum notes: why there are none: two nodes come back empty in turn, and all are asked' ASK_ALL "${twice_empty[@]}"
broken "$stays" 'quorum notes: why there are none: each lease reads and writes back between two restarts' BETWEEN "${twice_empty[@]}"
broken "$can_be_read" 'quorum notes: why there are none: a restarted node is silent, and nobody can read' UNREAD "${twice_empty[@]}"
wait
[[ ! -e $all/failed ]]
