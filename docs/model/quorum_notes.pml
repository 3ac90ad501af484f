/* SPDX-License-Identifier: Apache-2.0

   Notes on a majority: one note beside one key, on three independent nodes. README.md beside this file
   says what is modelled and what is not; run.sh, with which sizes it is checked and which faults have
   to be found. It is the reason why quorumstore refuses notes.

   A lease has a larger token than the one before, and one at a time is trusted: quorum.pml proves that. Its
   holder writes one note, and may die at any step. A reader asks a majority, and writes the latest note that
   it found to a majority before it answers. A node takes a note whose token is not smaller than that of its own.
   A request may be executed again at any later time.
     LEASES    how many there are, which is also the largest token
     RESTARTS  how often a node is restarted empty, one at a time. In its grace it takes no part. No call outlasts
               half a grace: a grace has two halves, and each ends when no call from before it is under way
     FAULT     breaks one rule; a name from the list below

   A restarted node is silent about notes until one is written to it, or a reader writes to it that there is none. No
   other node is restarted before. With that rule the promises hold. But nobody can see to it: a note is beside a key
   for days, and nobody knows all keys. So the names with REASON are of what a store could do. There no call is under way
   when a node is restarted, or when its grace ends. */
#ifndef LEASES
#define LEASES 3
#endif
#ifndef RESTARTS
#define RESTARTS 0
#endif

/* The rules, each of which FAULT may break. */
#define SOUND 0
#define NO_WRITEBACK 1   /* a reader does not write back */
#define MINORITY 2       /* a write to one node is acknowledged */
#define OLDER 3          /* a node takes an older note */
#define LONG_CALLS 4     /* a call outlasts half a grace, but no grace */
#define AS_EMPTY 5       /* REASON: a restarted node says that there is no note */
#define ASK_ALL 6        /* REASON: the same, and a reader asks every node that is not in its grace */
#define BETWEEN 7        /* REASON: the same as AS_EMPTY, and a note is read, and written back, between two restarts */
#define UNREAD 8         /* REASON: a node is restarted while another is silent */
#define IN_GRACE 9       /* the same as AS_EMPTY, and a note is read, and written back, in each grace. It breaks no promise */
#ifndef FAULT
#define FAULT SOUND
#endif
#define SILENT (FAULT!=AS_EMPTY && FAULT!=ASK_ALL && FAULT!=BETWEEN && FAULT!=IN_GRACE)
#define CALM (FAULT < AS_EMPTY || st[0] == IDLE && st[1] == IDLE && st[2] == IDLE)

/* Nodes: the token of the note, 0 if there is none; whether the node is not silent. out is the one in its grace. */
byte note[3], out = 3, half, restarts;
bool knows[3] = true, touched = true;  /* touched: the note was read since the restart */

/* Calls: 0 is the holder's, 1 and 2 are the readers'. A slot is a call at a node. */
#define SLOT(c, n) (3*(c)+(n))
mtype = { IDLE, ASK, WRITE };
mtype st[3] = IDLE;
bool asked[9], has[9], old[3];  /* it has answered; it has the note of the call; a call from before the half */
byte tok[3], begun;             /* of the note that is written, or found; of the last lease */

/* The latest note that was read, or whose write was acknowledged: now, and when a read began. */
byte known, floor[3];
hidden byte j;

#define MAX2(a, b) ((a) > (b) -> (a) : (b))
#define NUMBER(a, c) (a[SLOT(c, 0)] + a[SLOT(c, 1)] + a[SLOT(c, 2)])
#define ENOUGH(c) (NUMBER(has, c) >= (FAULT==MINORITY && (c) == 0 -> 1 : 2) || FAULT==NO_WRITEBACK && (c) != 0)

inline put(n, t) { if :: t >= note[n] || FAULT==OLDER -> note[n] = t :: else fi }

inline idle(c) {
  st[c] = IDLE; old[c] = false; tok[c] = 0; floor[c] = 0;
  j = 0; do :: j < 3 -> asked[SLOT(c, j)] = false; has[SLOT(c, j)] = false; j++ :: else -> break od; j = 0
}

/* next_half begins a half of a grace, or ends it. */
#define NONE_OLD (!old[0] && !old[1] && !old[2])
inline next_half() { j = 0; do :: j < 3 -> old[j] = (out < 3 && st[j] != IDLE); j++ :: else -> break od; j = 0 }

proctype environment() {
end:
  do
  /* A request is executed late, or again. It ends no silence: its note may be an old one. */
#define LATE(n, t) :: d_step { t <= begun && n != out && note[n] != t -> put(n, t) }
  LATE(0, 1) LATE(0, 2) LATE(0, 3) LATE(1, 1) LATE(1, 2) LATE(1, 3) LATE(2, 1) LATE(2, 2) LATE(2, 3)

  /* A node is restarted empty. Nodes are alike, so the first one may be the last. */
#define NEXT (restarts < RESTARTS && out == 3 && CALM && (touched || FAULT!=BETWEEN) && (FAULT==UNREAD || knows[0] && knows[1] && knows[2]))
#define EMPTY(n) :: d_step { NEXT && (restarts > 0 || n == 2) -> restarts++; out = n; half = 1; note[n] = 0; knows[n] = !SILENT; touched = false; next_half() }
  EMPTY(0) EMPTY(1) EMPTY(2)
  :: d_step { half == 1 && (NONE_OLD || FAULT==LONG_CALLS) -> half = 2; if :: FAULT!=LONG_CALLS -> next_half() :: else fi }
  :: d_step { half == 2 && NONE_OLD && CALM && (touched || FAULT!=IN_GRACE) -> half = 0; out = 3; next_half();
      assert(knows[0]+knows[1]+knows[2] >= 2) }                            /* the note can be read */
  od
}

/* Each answer is in the same step as its request. A call may end without one at any step. */
#define WRITES_AT(c, n) \
  :: d_step { st[c] == WRITE && !has[SLOT(c, n)] && n != out -> put(n, tok[c]); has[SLOT(c, n)] = true; knows[n] = true }

proctype holder() {
end:
  do
  :: d_step { st[0] == IDLE && begun < LEASES -> begun++; tok[0] = begun; st[0] = WRITE }
  WRITES_AT(0, 0) WRITES_AT(0, 1) WRITES_AT(0, 2)
  :: d_step { st[0] == WRITE && ENOUGH(0) -> known = MAX2(known, tok[0]); idle(0) }
  :: d_step { st[0] != IDLE -> idle(0) }
  od
}

proctype reader(byte c) {
end:
  do
  :: d_step { st[c] == IDLE -> st[c] = ASK; floor[c] = known }
#define ASKS_AT(n) \
  :: d_step { st[c] == ASK && !asked[SLOT(c, n)] && n != out && knows[n] -> asked[SLOT(c, n)] = true; \
      if :: note[n] > tok[c] -> tok[c] = note[n]; has[SLOT(c, 0)] = false; has[SLOT(c, 1)] = false; has[SLOT(c, 2)] = false :: else fi; \
      has[SLOT(c, n)] = (note[n] == tok[c]) }
  ASKS_AT(0) ASKS_AT(1) ASKS_AT(2)
  :: d_step { st[c] == ASK && NUMBER(asked, c) >= (FAULT==ASK_ALL && out == 3 -> 3 : 2) -> st[c] = WRITE;
      asked[SLOT(c, 0)] = false; asked[SLOT(c, 1)] = false; asked[SLOT(c, 2)] = false }
  WRITES_AT(c, 0) WRITES_AT(c, 1) WRITES_AT(c, 2)
  :: d_step { st[c] == WRITE && ENOUGH(c) ->
      assert(tok[c] >= floor[c]);                                          /* what was acknowledged or read stays */
      known = MAX2(known, tok[c]); touched = (touched || !old[c] && half != 1); idle(c) }
  :: d_step { st[c] != IDLE -> idle(c) }
  od
}

init { atomic { run environment(); run holder(); run reader(1); run reader(2) } }
