/* SPDX-License-Identifier: Apache-2.0

   A lease of a majority: one lock made of three independent nodes. README.md beside this file says
   what is modelled and what is not; run.sh, with which sizes it is checked and which faults have
   to be found. The words are those of lock.pml, and these:
     claim   one acquisition of a client
     vote    a lease that one node gave to a claim, under an owner id of that node alone
   A claim is trusted while a majority of its votes is. Each node is what lock.pml has proved: it gives
   one exclusive lease, and remembers withdrawn owners.

   A request is executed and answered in one step. Or it is late: then it
   may be executed, answered, given up and lost at any later time. Clients make claims without end.
     TTL     ticks; GT: the grant TTL, which is given with it
     LATE    one request at a time may be late, 0 or 1
     FORGET  the last node is restarted empty, once. Nodes are alike, so it may be that one
     TOKENS  tokens are modelled, and a run ends when a node's counter is there; 0: they are not
     SHORT   tokens follow the nodes' clocks, which show RATE more with each tick, and of which the first is AHEAD
             by that many ticks. A vote needs no write-back if its token is the clock's and less than SHORT behind.
             A run ends after TMAX ticks
     LIVE    time waits for whoever has something to do, and everyone is served within BOUND
     FAULT   breaks one rule; a name from the list below */
#ifndef TTL
#define TTL 2
#define GT 1
#endif
#ifndef LATE
#define LATE 1
#endif
#ifndef FORGET
#define FORGET 0
#endif
#ifndef TOKENS
#define TOKENS 0
#endif
#ifndef SHORT
#define SHORT 0
#define AHEAD 0
#endif
#define RATE 2
#define TMAX 4

/* The rules, each of which FAULT may break. */
#define SOUND 0
#define DEADLINE_MAX 1   /* a claim is trusted until the last of its votes ends */
#define REVIVE 2         /* a late answer to a renewal revives a dead vote */
#define RENEW_DEAD 3     /* dead votes are renewed */
#define RETAKE_LATE 4    /* a claim whose majority has ended takes votes again */
#define LATE_VOTE 5      /* an answer is counted without a look whether the majority has ended */
#define SAME_ID 6        /* a later vote has the owner id of the one before */
#define OVERTAKE 7       /* a release is never uncertain */
#define EVENT_COUNTS 8   /* a message of a handoff is counted as a vote */
#define RECEIPT 9        /* a vote counts from the receipt of the answer */
#define NO_GRACE 10      /* a restarted node grants at once */
#define NO_WRITEBACK 11  /* a vote counts although its node does not know the lease's token */
#define UNSAID 12        /* a written token counts from the request, not from its answer */
#define OLD_TOKEN 13     /* a vote taken again counts although its node does not know the token. It breaks no promise */
#define NO_FLOOR 14      /* a restarted node's tokens begin anew */
#define KEEP_VOTES 15    /* who has not the door's vote asks the others, and keeps their votes */
#define KEEP_MINORITY 16 /* who reaches no majority keeps its votes */
#define STICKY_DOOR 17   /* a door stays, although an earlier node answers again */
#define SHORT_GRACE 18   /* the grace is shorter than the TTL */
#define SHORT_ANY 19     /* a vote needs no write-back although its token is the counter's */
#define SHORT_RELEASE 20 /* a release does not say which token was used last */
#define SHORT_WRITTEN 21 /* a vote needs no write-back if what was written there is not far behind */
#ifndef FAULT
#define FAULT SOUND
#endif

mtype = { NOTHING, ACQUIRE, RENEW, RELEASE };       /* requests */
mtype = { GRANTED, WAITING, OK, LOST };             /* answers */
mtype = { WAIT, HOLD };                             /* claims */

/* A slot is a client at a node. An owner is 1 or 2, the present owners of the clients 0 and 1; FORMER, any that
   was given up; or LATE_ONE, which was given up too, and of which a request is late. */
#define SLOT(c, n) ((c)*3+(n))
#define OWNER(x) (1+(x)/3)
#define FORMER 3
#define LATE_ONE 4

/* Nodes: the record's owner, 0 if there is none, its ticks and token; the counter. The last node's grace. */
byte who[3], left[3], rtoken[3], counter[3], grace;
bool forgot;
byte now, last[3];            /* the time; the token of the lease whose owner was given up */
bool exact[3];                /* the record's token was the clock's time (flag t) */
#define CLOCK(n) (RATE*(now+((n) == 0 -> AHEAD : 0)))
#define IN_GRACE(n) ((n) == 2 && grace > 0)

/* Clients. vote: the ticks for which it counts; 0: there is none, and the client may have asked for it.
   knows: a token that the vote's node is known to know. asks: the late request is this slot's, and it waits. */
mtype st[2] = WAIT;
byte vote[6], knows[6], tok[2], top;
bool clocked[6], asks[6], ended[2], stop, dead[6], msg[6]; /* the last two are for faults */

/* The late request. withdrawn: a release of the owner was executed meanwhile. A client is uncertain whenever such a
   request is under way. So a node has to remember an owner only then. */
mtype kind = NOTHING, answer = NOTHING;
byte slot, owner, age, ltok, number;
bool withdrawn;

hidden mtype r = NOTHING;
hidden byte rn, f, j;         /* scratch */

#define MAX2(a, b) ((a) > (b) -> (a) : (b))
#define KNOWN(x) (FAULT==NO_WRITEBACK || FAULT==OLD_TOKEN || SHORT > 0 || knows[x] >= tok[(x)/3])
#define LASTS(x) (vote[x] > 0 -> knows[x] : 0)
#define MOST(c) MAX2(LASTS(3*(c)), MAX2(LASTS(3*(c)+1), LASTS(3*(c)+2)))
#define CARRIES(c) (st[c] == WAIT -> MOST(c) : tok[c])
#define HAS(x, t) (vote[x] > 0 && (FAULT==NO_WRITEBACK || knows[x] >= t || knows[x]+SHORT > t && (clocked[x] || FAULT==SHORT_ANY)))
#define COMPLETE(c) (HAS(3*(c), MOST(c)) + HAS(3*(c)+1, MOST(c)) + HAS(3*(c)+2, MOST(c)) >= 2)
#define COUNTS(x) (vote[x] > 0 && KNOWN(x))
#define MAJORITY(c) (COUNTS(3*(c)) + COUNTS(3*(c)+1) + COUNTS(3*(c)+2) >= (FAULT==DEADLINE_MAX -> 1 : 2))
#define TRUSTS(c) (st[c] == HOLD && MAJORITY(c))

/* promises: leases are exclusive, and one that has ended is never trusted again. */
inline promises() {
  assert(!(TRUSTS(0) && TRUSTS(1)));
  assert(!(ended[0] && TRUSTS(0)) && !(ended[1] && TRUSTS(1)))
}

/* ---- a node ---- */

inline draw(n) {
  if :: TOKENS > 0 -> counter[n]++; if :: SHORT > 0 && CLOCK(n) >= counter[n] -> counter[n] = CLOCK(n); exact[n] = true :: else fi;
    rtoken[n] = counter[n]; if :: counter[n] >= TOKENS -> stop = true :: else fi :: else fi
}
inline free(n) { who[n] = 0; left[n] = 0; rtoken[n] = 0; exact[n] = false; last[n] = 0 }

inline acquire(n, o) {
  if
  :: who[n] == 0 && !IN_GRACE(n) -> draw(n); who[n] = o; left[n] = TTL; r = GRANTED; rn = rtoken[n]
  :: who[n] == o && !IN_GRACE(n) -> left[n] = TTL; r = GRANTED; rn = rtoken[n]
  :: else -> r = WAITING; rn = 0
  fi
}

inline renew(n, o, t) {
  if :: t > counter[n] -> counter[n] = t :: else fi;
  if
  :: who[n] == o -> left[n] = TTL; r = OK
  :: who[n] == 0 && IN_GRACE(n) -> who[n] = o; left[n] = TTL; r = OK                                /* written anew */
  :: else -> r = LOST
  fi
}

/* release frees the key, or hands it to the client w, which waits. 2: to nobody. */
inline release(n, o, w) {
  if
  :: who[n] == o -> if :: last[n] > counter[n] && FAULT!=SHORT_RELEASE -> counter[n] = last[n] :: else fi;
    free(n); if :: w < 2 -> draw(n); who[n] = OWNER(SLOT(w, n)); left[n] = GT; msg[SLOT(w, n)] = (FAULT==EVENT_COUNTS) :: else fi
  :: else
  fi;
  if :: kind != NOTHING && kind != RELEASE && owner == o && slot%3 == n -> withdrawn = true :: else fi
}

/* ---- a client ---- */

inline nothing_late() {
  if :: kind != NOTHING && who[slot%3] == LATE_ONE -> who[slot%3] = FORMER :: else fi;
  kind = NOTHING; answer = NOTHING; slot = 0; owner = 0; age = 0; ltok = 0; number = 0; withdrawn = false
}
inline late(k, x, t, waits) { kind = k; slot = x; owner = OWNER(x); ltok = t; asks[x] = waits }

/* next_owner gives an owner id up. What it has at the node is released at any later time. */
inline next_owner(x) {
  f = FORMER;
  if
  :: kind != NOTHING && slot == x && owner == OWNER(x) && answer != NOTHING -> nothing_late()
  :: kind != NOTHING && slot == x && owner == OWNER(x) && answer == NOTHING -> age = 0; owner = LATE_ONE; f = LATE_ONE
  :: else
  fi;
  if :: who[(x)%3] == OWNER(x) -> who[(x)%3] = f; last[(x)%3] = (SHORT > 0 -> tok[(x)/3] : 0) :: else fi;
  f = 0; clocked[x] = false; vote[x] = 0; knows[x] = 0; asks[x] = false; msg[x] = false; dead[x] = false
}

/* end_vote: a vote that is lost or dead is never one again, and its owner id is given up. */
inline end_vote(x) {
  if :: FAULT==REVIVE || FAULT==RENEW_DEAD -> vote[x] = 0; knows[x] = 0; dead[x] = true :: else -> next_owner(x) fi
}

/* Whether a majority has ended is seen in the very step. The client notices it later. */
inline look(c) { if :: st[c] == HOLD && !MAJORITY(c) -> ended[c] = true :: else fi }

#define GOES_ON(c) (st[c] == WAIT || MAJORITY(c) || FAULT==RETAKE_LATE)
#define COUNTED(c) (GOES_ON(c) || FAULT==LATE_VOTE)
#define AGE(a) (FAULT==RECEIPT -> 0 : a)

/* take_in is the arrival of an answer to a request of the present owner, which was sent a ticks ago. */
inline take_in(x, k, ans, a, t, num) {
  if
  :: k == ACQUIRE && ans == GRANTED ->
    if :: AGE(a) < TTL && COUNTED((x)/3) -> vote[x] = TTL-AGE(a); knows[x] = num; clocked[x] = exact[(x)%3] :: else -> next_owner(x) fi
  :: k == RENEW && ans == OK ->
    if
    :: AGE(a) < TTL && COUNTED((x)/3) -> dead[x] = false;
      if :: TTL-AGE(a) > vote[x] -> vote[x] = TTL-AGE(a) :: else fi; if :: t > knows[x] -> knows[x] = t; clocked[x] = (clocked[x] && FAULT==SHORT_WRITTEN) :: else fi
    :: else
    fi
  :: k == RENEW && ans == LOST -> end_vote(x)
  :: else
  fi;
  look((x)/3); promises()
}

/* hand_out begins a lease. */
inline hand_out(c) {
  tok[c] = MOST(c); st[c] = HOLD; promises();
  if :: TOKENS > 0 -> assert(tok[c] > top); top = tok[c] :: else fi                       /* tokens rise */
}

/* end_claim ends a claim. The client's next one may begin. */
inline end_claim(c) { next_owner(3*c); next_owner(3*c+1); next_owner(3*c+2); st[c] = WAIT; ended[c] = false; tok[c] = 0 }

inline tick() {
  j = 0; do :: j < 3 -> if :: left[j] > 0 -> left[j]--; if :: left[j] == 0 -> free(j) :: else fi :: else fi; j++ :: else -> break od;
  if :: kind != NOTHING && asks[slot] && age < TTL -> age++ :: else fi;
  j = 0; do :: j < 6 -> if :: vote[j] > 0 -> vote[j]--; if :: vote[j] == 0 -> end_vote(j) :: else fi :: else fi; j++ :: else -> break od;
  if :: grace > 0 -> grace-- :: else fi;
  if :: SHORT > 0 -> now++; if :: now >= TMAX -> stop = true :: else fi :: else fi;
  j = 0; look(0); look(1)
}

#if !LIVE
#define WAITS(c, n) (vote[SLOT(c, n)] == 0 && GOES_ON(c))
#define AWAITED (kind != NOTHING && asks[slot] && owner == OWNER(slot) && kind != RELEASE)

proctype environment() provided (!stop) {
end:
  do
  :: d_step { tick() }
  :: d_step { FORGET && !forgot -> forgot = true; free(2); if :: slot%3 == 2 -> withdrawn = false :: else fi;
      grace = (FAULT==NO_GRACE -> 0 : (FAULT==SHORT_GRACE -> TTL-1 : TTL));       /* a node is restarted empty */
      counter[2] = (FAULT==NO_FLOOR || SHORT > 0 -> 0 : MAX2(counter[0], MAX2(counter[1], counter[2]))) } /* its clock is past every token */

  /* The release of an owner that was given up is executed, and the key may be handed on. */
#define RELEASED(n, w) :: d_step { who[n] >= FORMER && (w == 2 || !IN_GRACE(n) && WAITS((w)%2, n)) -> f = who[n]; release(n, f, w); f = 0 }
  RELEASED(0, 0) RELEASED(0, 1) RELEASED(0, 2)
  RELEASED(1, 0) RELEASED(1, 1) RELEASED(1, 2)
  RELEASED(2, 0) RELEASED(2, 1) RELEASED(2, 2)

  /* The late request is executed, or its owner's release overtakes it. */
  :: d_step { kind != NOTHING && answer == NOTHING ->
      rn = 0; r = LOST;
      if
      :: withdrawn && FAULT!=OVERTAKE
      :: (!withdrawn || FAULT==OVERTAKE) && kind == ACQUIRE -> acquire(slot%3, owner)
      :: (!withdrawn || FAULT==OVERTAKE) && kind == RENEW -> renew(slot%3, owner, ltok)
      :: kind == RELEASE -> f = owner; release(slot%3, f, 2); f = 0
      fi;
      assert(!withdrawn || who[slot%3] != owner);                                         /* nothing is left */
      if :: AWAITED -> answer = r; number = rn :: else -> nothing_late() fi; r = NOTHING; rn = 0 }
  :: d_step { kind != NOTHING && owner == LATE_ONE && !withdrawn -> release(slot%3, LATE_ONE, 2) }
  /* Its answer arrives; it is lost; the client waits no more, and may ask again. */
  :: d_step { answer != NOTHING -> j = slot; asks[j] = false; take_in(j, kind, answer, age, ltok, number); nothing_late(); j = 0 }
  :: d_step { kind != NOTHING -> if :: AWAITED -> asks[slot] = false :: else fi; nothing_late() }
  :: d_step { AWAITED && answer == NOTHING -> asks[slot] = false; age = 0 }
  od
}

#define A_PLACE (LATE > 0 && kind == NOTHING)
#define MAY_ASK(x) (GOES_ON(c) && !asks[x] && vote[x] == 0 && !dead[x])
#define MAY_RENEW(x) (GOES_ON(c) && !asks[x] && (vote[x] > 0 && (vote[x] < TTL || CARRIES(c) > knows[x]) || FAULT==RENEW_DEAD && dead[x]))

proctype client(byte c) provided (!stop) {
end:
  do
#define DOES(x) \
  :: d_step { MAY_ASK(x) -> acquire((x)%3, OWNER(x)); take_in(x, ACQUIRE, r, 0, 0, rn); r = NOTHING; rn = 0 } \
  :: d_step { MAY_RENEW(x) -> rn = CARRIES(c); renew((x)%3, OWNER(x), rn); take_in(x, RENEW, r, 0, rn, 0); r = NOTHING; rn = 0 } \
  :: d_step { dead[x] || st[c] == WAIT && (vote[x] > 0 || asks[x] || who[(x)%3] == OWNER(x)) -> next_owner(x) } \
  :: d_step { MAY_ASK(x) && A_PLACE -> late(ACQUIRE, x, 0, true) } \
  :: d_step { MAY_RENEW(x) && A_PLACE -> rn = CARRIES(c); late(RENEW, x, rn, true); \
      if :: FAULT==UNSAID && rn > knows[x] -> knows[x] = rn :: else fi; rn = 0 } \
  :: d_step { FAULT==SAME_ID && st[c] == WAIT && vote[x] > 0 && !asks[x] && A_PLACE -> late(RELEASE, x, 0, false); vote[x] = 0 } \
  :: d_step { msg[x] && vote[x] == 0 && GOES_ON(c) -> msg[x] = false; vote[x] = GT; promises() }
  DOES(SLOT(c, 0)) DOES(SLOT(c, 1)) DOES(SLOT(c, 2))
  :: d_step { st[c] == WAIT && COMPLETE(c) -> hand_out(c) }
  :: d_step { st[c] == HOLD && MAJORITY(c) -> end_claim(c) }                              /* it unlocks */
  :: d_step { st[c] == HOLD && ended[c] -> end_claim(c) }                                 /* it notices that it has ended */
  od
}

init { atomic { run environment(); run client(0); run client(1) } }
#else
/* Each client asks each node at most once in a tick. A node dies, a client is cut off from a node and perhaps not
   for ever, a client dies: each at most once, at any time. The bound counts from the last of these. */
bool heard[6], gone[2], dies, cuts;
byte down = 3, cut = 6;       /* the node that died; the slot in which the client does not reach the node */
byte waited[2], held[2], door[2] = 3;

#define REACHES(x) ((x)%3 != down && (x) != cut)
#define CAN(c) (REACHES(3*(c)) + REACHES(3*(c)+1) + REACHES(3*(c)+2) >= 2)
#define FIRST(c) (REACHES(3*(c)) -> 0 : (REACHES(3*(c)+1) -> 1 : 2))
#define DOOR(c) (FAULT==STICKY_DOOR && door[c] < 3 && REACHES(SLOT(c, door[c])) -> door[c] : FIRST(c))
#define HAS_DOOR(c) (vote[SLOT(c, DOOR(c))] > 0)
#define WANTS(c) (st[c] == WAIT && !gone[c] && !COMPLETE(c) && (CAN(c) || FAULT==KEEP_MINORITY))
#define TO_ASK(c, n) (WANTS(c) && REACHES(SLOT(c, n)) && !heard[SLOT(c, n)] && (n == DOOR(c) || HAS_DOOR(c) || FAULT==KEEP_VOTES))
#define AT(x) (vote[x] > 0 || who[(x)%3] == OWNER(x))
#define TO_GIVE(c, n) (st[c] == WAIT && !gone[c] && AT(SLOT(c, n)) && REACHES(SLOT(c, n)) && !COMPLETE(c) && \
  ((!CAN(c) && FAULT!=KEEP_MINORITY) || (n != DOOR(c) && !HAS_DOOR(c) && FAULT!=KEEP_VOTES)))
#define TO_DO(c) (TO_ASK(c, 0) || TO_ASK(c, 1) || TO_ASK(c, 2) || TO_GIVE(c, 0) || TO_GIVE(c, 1) || TO_GIVE(c, 2) || \
  (!gone[c] && (st[c] == WAIT && COMPLETE(c) || st[c] == HOLD && held[c] > 0)))
#define QUEUES(c, n) (WANTS(c) && vote[SLOT(c, n)] == 0 && REACHES(SLOT(c, n)) && (n == DOOR(c) || HAS_DOOR(c) || FAULT==KEEP_VOTES))

/* give releases what the client has at a node, and it is handed on. If the node is out of reach, it stays for its TTL. */
inline give(x) {
  if
  :: who[(x)%3] == OWNER(x) && REACHES(x) -> rn = (QUEUES(1-(x)/3, (x)%3) -> 1-(x)/3 : 2); release((x)%3, OWNER(x), rn); rn = 0
  :: else
  fi;
  next_owner(x)
}

proctype lives(byte c) {
  do
#define LIVES_AT(n) \
  :: d_step { TO_ASK(c, n) -> heard[SLOT(c, n)] = true; if :: FAULT==STICKY_DOOR && door[c] == 3 -> door[c] = FIRST(c) :: else fi; \
      if \
      :: vote[SLOT(c, n)] > 0 -> renew(n, OWNER(SLOT(c, n)), 0); take_in(SLOT(c, n), RENEW, r, 0, 0, 0) \
      :: else -> acquire(n, OWNER(SLOT(c, n))); take_in(SLOT(c, n), ACQUIRE, r, 0, 0, 0) \
      fi; r = NOTHING; rn = 0 } \
  :: d_step { TO_GIVE(c, n) -> give(SLOT(c, n)) }
  LIVES_AT(0)
  LIVES_AT(1)
  LIVES_AT(2)
  :: d_step { !gone[c] && st[c] == WAIT && COMPLETE(c) -> hand_out(c); waited[c] = 0 }
  :: d_step { st[c] == HOLD && held[c] > 0 -> give(3*c); give(3*c+1); give(3*c+2); end_claim(c); held[c] = 0; door[c] = 3; gone[c] = true }
  od
}

inline fault() { waited[0] = 0; waited[1] = 0 }
proctype world() {
  do
  :: d_step { !TO_DO(0) && !TO_DO(1) -> tick(); j = 0; do :: j < 6 -> heard[j] = false; j++ :: else -> break od;
      j = 0; do :: j < 2 -> if :: st[j] == HOLD -> held[j]++ :: else fi;
        if :: st[j] == WAIT && !gone[j] && CAN(j) -> waited[j]++; assert(waited[j] <= BOUND) :: else fi; j++ :: else -> break od; j = 0 }  /* everyone is served */
  :: d_step { down == 3 -> down = 0; fault() }
  :: d_step { down == 3 -> down = 1; fault() }
  :: d_step { down == 3 -> down = 2; fault() }
  :: d_step { !cuts -> cuts = true; cut = 3; fault() }
  :: d_step { !cuts -> cuts = true; cut = 4; fault() }
  :: d_step { !cuts -> cuts = true; cut = 5; fault() }
  :: d_step { cut != 6 -> cut = 6; fault() }
  :: d_step { !dies && !gone[0] -> dies = true; gone[0] = true; st[0] = WAIT; vote[0] = 0; vote[1] = 0; vote[2] = 0; fault() }
  :: d_step { !dies && !gone[1] -> dies = true; gone[1] = true; st[1] = WAIT; vote[3] = 0; vote[4] = 0; vote[5] = 0; fault() }
  od
}

init { atomic { run world(); run lives(0); run lives(1) } }
#endif
