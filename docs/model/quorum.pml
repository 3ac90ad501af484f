/* SPDX-License-Identifier: Apache-2.0

   A lease of a majority: one lock made of three independent nodes. README.md beside this file says
   what is modelled and what is not; run.sh, with which sizes it is checked and which faults have
   to be found. The words are those of lock.pml, and these:
     claim   one acquisition of a client
     vote    a lease that one node gave to a claim, under an owner id of that node alone
   A claim is trusted while a majority of its votes is. Each node is what lock.pml has proved: it gives
   one exclusive lease, and remembers withdrawn owners.

   A request is executed and answered in one step. Or it is late: then it has one of a few places, in
   which it may be executed, answered, given up and lost at any later time. Clients make claims without end.
     TTL     ticks; GT: the grant TTL
     LATE    how many requests may be late at a time
     FORGET  the last node is restarted empty, once. Nodes are alike, so it may be that one
     TOKENS  tokens are modelled; a run ends when a node's counter is there
     LIVE    time waits for whoever has something to do, and everyone is served within BOUND
     FAULT   breaks one rule; a name from the list below */
#ifndef TTL
#define TTL 2
#endif
#ifndef GT
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
#ifndef LIVE
#define LIVE 0
#endif
#ifndef BOUND
#define BOUND 255
#endif

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
#ifndef FAULT
#define FAULT SOUND
#endif

mtype = { NOTHING, ACQUIRE, RENEW, RELEASE };       /* requests */
mtype = { GRANTED, WAITING, GONE, OK, LOST };       /* answers */
mtype = { WAIT, HOLD };                             /* claims */

/* A slot is a client at a node. An owner is 1 or 2, which are the present owners of the clients 0 and 1; 3, which
   is any owner that was given up; or 4 or more, which was given up too, and a request of it is late. */
#define SLOT(c, n) ((c)*3+(n))
#define OWNER(x) (1+(x)/3)
#define IN_USE(o) ((o) == 1 || (o) == 2)
#define FORMER 3

/* Nodes: the record's owner, 0 if there is none; its ticks and those of the grace; the counter, the record's token. */
byte who[3], left[3];
#if FORGET
byte grace; bool forgot;
#define IN_GRACE(n) ((n) == 2 && grace > 0)
#else
#define IN_GRACE(n) false
#endif
#if TOKENS
byte counter[3], rtoken[3];
byte knows[6];                /* what the vote's node is known to know */
byte tok[2], top;             /* each lease's token; the largest that a lease ever had */
bool stop;
#endif

/* Clients. vote: the ticks for which it counts; 0: there is none, and the client may have asked for it.
   asks: it waits for the answer to a late request. */
mtype st[2] = WAIT;
byte vote[6];
bool asks[6], ended[2];
#if FAULT==REVIVE || FAULT==RENEW_DEAD
bool dead[6];
#endif
#if FAULT==EVENT_COUNTS
bool msg[6];
#endif

/* Late requests. withdrawn: a release of the owner was executed meanwhile. A client is uncertain whenever such a
   request is under way. So a node has to remember an owner only then. */
#if LATE
mtype kind[LATE] = NOTHING, answer[LATE] = NOTHING;
byte slot[LATE], owner[LATE], age[LATE], ltok[LATE], number[LATE];
bool awaited[LATE], withdrawn[LATE];
#endif

hidden mtype r = NOTHING;
hidden byte rn, i, j;

#if TOKENS
#define MAX2(a, b) ((a) > (b) -> (a) : (b))
#define KNOWN(x) (FAULT==NO_WRITEBACK || FAULT==OLD_TOKEN || knows[x] >= tok[(x)/3])
#define LIVES(x) (vote[x] > 0 -> knows[x] : 0)
#define MOST(c) MAX2(LIVES(3*(c)), MAX2(LIVES(3*(c)+1), LIVES(3*(c)+2)))
#define CARRIES(c) (st[c] == WAIT -> MOST(c) : tok[c])
#define HAS(x, t) (vote[x] > 0 && (FAULT==NO_WRITEBACK || knows[x] >= t))
#define COMPLETE(c) (HAS(3*(c), MOST(c)) + HAS(3*(c)+1, MOST(c)) + HAS(3*(c)+2, MOST(c)) >= 2)
#define NEWS(x) (CARRIES((x)/3) > knows[x])
#else
#define KNOWN(x) true
#define CARRIES(c) 0
#define COMPLETE(c) (COUNT(c) >= 2)
#define NEWS(x) false
#endif
#define COUNTS(x) (vote[x] > 0 && KNOWN(x))
#define COUNT(c) (COUNTS(3*(c)) + COUNTS(3*(c)+1) + COUNTS(3*(c)+2))
#if FAULT==DEADLINE_MAX
#define MAJORITY(c) (COUNT(c) >= 1)
#else
#define MAJORITY(c) (COUNT(c) >= 2)
#endif
#define TRUSTS(c) (st[c] == HOLD && MAJORITY(c))

/* promises: leases are exclusive, and one that has ended is never trusted again. */
inline promises() {
  assert(!(TRUSTS(0) && TRUSTS(1)));
  assert(!(ended[0] && TRUSTS(0)) && !(ended[1] && TRUSTS(1)))
}

/* ---- a node ---- */

#if TOKENS
inline draw(n) { counter[n]++; rtoken[n] = counter[n]; if :: counter[n] >= TOKENS -> stop = true :: else fi }
inline raise(n, t) { if :: t > counter[n] -> counter[n] = t :: else fi }
inline say(n) { rn = rtoken[n] }
inline free(n) { who[n] = 0; left[n] = 0; rtoken[n] = 0 }
#else
inline draw(n) { skip }
inline raise(n, t) { skip }
inline say(n) { skip }
inline free(n) { who[n] = 0; left[n] = 0 }
#endif

inline acquire(n, o) {
  if
  :: who[n] == 0 && !IN_GRACE(n) -> draw(n); who[n] = o; left[n] = TTL; r = GRANTED; say(n)
  :: who[n] == o && !IN_GRACE(n) -> left[n] = TTL; r = GRANTED; say(n)
  :: else -> r = WAITING
  fi
}

inline renew(n, o, g, t) {
  raise(n, t);
  if
  :: who[n] == o -> left[n] = TTL; r = OK
  :: who[n] == 0 && IN_GRACE(n) && !(g) -> who[n] = o; left[n] = TTL; r = OK                       /* written anew */
  :: else -> r = LOST
  fi
}

/* release frees the key, or hands it to the client w, which waits. 2: to nobody. */
inline release(n, o, w) {
  if
  :: who[n] == o -> free(n);
    if
    :: w < 2 -> draw(n); who[n] = OWNER(SLOT(w, n)); left[n] = GT;
#if FAULT==EVENT_COUNTS
      msg[SLOT(w, n)] = true
#endif
    :: else
    fi
  :: else
  fi;
#if LATE
  i = 0; do :: i < LATE -> if :: owner[i] == o && slot[i]%3 == n && kind[i] != RELEASE -> withdrawn[i] = true :: else fi; i++ :: else -> break od; i = 0
#endif
}

/* ---- a client ---- */

#if LATE
#if LATE>1
#define NUMBER(p) (owner[1-(p)] == 4+(p) -> 5-(p) : 4+(p))
#define ALONE(p) (owner[0] != owner[1])
#else
#define NUMBER(p) 4
#define ALONE(p) true
#endif
inline nothing_late(p) {
  if :: owner[p] >= 4 && ALONE(p) && who[slot[p]%3] == owner[p] -> who[slot[p]%3] = FORMER :: else fi;
  kind[p] = NOTHING; answer[p] = NOTHING; slot[p] = 0; owner[p] = 0; age[p] = 0; ltok[p] = 0; number[p] = 0;
  awaited[p] = false; withdrawn[p] = false
}
inline late(p, k, x, t) { kind[p] = k; slot[p] = x; owner[p] = OWNER(x); ltok[p] = t; awaited[p] = true; asks[x] = true }
#endif

/* next_owner gives an owner id up. What it has at the node is released at any later time. */
inline next_owner(x) {
  rn = FORMER;
#if LATE
  i = 0; do :: i < LATE -> if :: slot[i] == x && kind[i] != NOTHING && owner[i] == OWNER(x) ->
      if :: answer[i] != NOTHING -> nothing_late(i)
      :: else -> awaited[i] = false; age[i] = 0; if :: rn == FORMER -> rn = NUMBER(i) :: else fi; owner[i] = rn fi
      :: else fi; i++ :: else -> break od; i = 0;
#endif
  if :: who[(x)%3] == OWNER(x) -> who[(x)%3] = rn :: else fi;
  vote[x] = 0; asks[x] = false; rn = 0;
#if TOKENS
  knows[x] = 0;
#endif
#if FAULT==EVENT_COUNTS
  msg[x] = false;
#endif
#if FAULT==REVIVE || FAULT==RENEW_DEAD
  dead[x] = false
#endif
}

/* end_vote: a vote that is lost or dead is never one again, and its owner id is given up. */
inline end_vote(x) {
#if FAULT==REVIVE || FAULT==RENEW_DEAD
  vote[x] = 0; dead[x] = true;
#if TOKENS
  knows[x] = 0
#endif
#else
  next_owner(x)
#endif
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
    if
    :: AGE(a) < TTL && COUNTED((x)/3) -> vote[x] = TTL-AGE(a);
#if TOKENS
      knows[x] = num
#endif
    :: else -> next_owner(x)
    fi
  :: k == ACQUIRE && ans == WAITING
  :: k == RENEW && ans == OK ->
    if
    :: AGE(a) < TTL && COUNTED((x)/3) ->
      if :: TTL-AGE(a) > vote[x] -> vote[x] = TTL-AGE(a) :: else fi;
#if FAULT==REVIVE || FAULT==RENEW_DEAD
      dead[x] = false;
#endif
#if TOKENS
      if :: t > knows[x] -> knows[x] = t :: else fi
#endif
    :: else
    fi
  :: k == RENEW && ans == LOST -> end_vote(x)
  fi;
  look((x)/3); promises()
}

/* written is the sending of a lease's token. Its node knows it when it has answered. */
inline written(x) {
#if FAULT==UNSAID
  if :: NEWS(x) -> knows[x] = CARRIES((x)/3); promises() :: else fi
#else
  skip
#endif
}

/* hand_out begins a lease. */
inline hand_out(c) {
#if TOKENS
  tok[c] = MOST(c);
#endif
  st[c] = HOLD; promises();
#if TOKENS
  assert(tok[c] > top); top = tok[c]                                                      /* tokens rise */
#endif
}

/* end_claim ends a claim. The client's next one may begin. */
inline end_claim(c) {
  next_owner(3*c); next_owner(3*c+1); next_owner(3*c+2); st[c] = WAIT; ended[c] = false;
#if TOKENS
  tok[c] = 0
#endif
}

inline tick() {
  j = 0; do :: j < 3 -> if :: left[j] > 0 -> left[j]--; if :: left[j] == 0 -> free(j) :: else fi :: else fi; j++ :: else -> break od;
#if LATE
  j = 0; do :: j < LATE -> if :: awaited[j] && age[j] < TTL -> age[j]++ :: else fi; j++ :: else -> break od;
#endif
  j = 0; do :: j < 6 -> if :: vote[j] > 0 -> vote[j]--; if :: vote[j] == 0 -> end_vote(j) :: else fi :: else fi; j++ :: else -> break od;
#if FORGET
  if :: grace > 0 -> grace-- :: else fi;
#endif
  j = 0; look(0); look(1)
}

#if TOKENS
#define PROVIDED provided (!stop)
#else
#define PROVIDED
#endif

#if !LIVE
proctype environment() PROVIDED {
end:
  do
  :: d_step { tick() }
#if FORGET
  :: d_step { !forgot -> forgot = true; free(2);                                  /* a node is restarted empty */
      grace = (FAULT==NO_GRACE -> 0 : (FAULT==SHORT_GRACE -> TTL-1 : TTL));
#if LATE
      j = 0; do :: j < LATE -> if :: slot[j]%3 == 2 -> withdrawn[j] = false :: else fi; j++ :: else -> break od; j = 0;
#endif
#if TOKENS
#if FAULT==NO_FLOOR
      counter[2] = 0
#else
      counter[2] = MAX2(counter[0], MAX2(counter[1], counter[2]))               /* its clock is past every token */
#endif
#endif
    }
#endif
  /* The release of an owner that was given up is executed, and the key may be handed on. */
#define WAITS(c, n) (vote[SLOT(c, n)] == 0 && GOES_ON(c))
#define RELEASED(n, w) :: d_step { who[n] != 0 && !IN_USE(who[n]) && (w == 2 || !IN_GRACE(n) && WAITS((w)%2, n)) -> rn = who[n]; release(n, rn, w); rn = 0 }
  RELEASED(0, 0) RELEASED(0, 1) RELEASED(0, 2)
  RELEASED(1, 0) RELEASED(1, 1) RELEASED(1, 2)
  RELEASED(2, 0) RELEASED(2, 1) RELEASED(2, 2)
#if LATE
  /* It is executed; its owner's release overtakes it; the answer arrives; it is lost; the client waits no more. */
#define LATES(p) \
  :: d_step { kind[p] != NOTHING && answer[p] == NOTHING -> \
      r = LOST; \
      if \
      :: kind[p] == ACQUIRE && (!withdrawn[p] || FAULT==OVERTAKE) -> acquire(slot[p]%3, owner[p]) \
      :: kind[p] == RENEW -> renew(slot[p]%3, owner[p], (withdrawn[p] && FAULT!=OVERTAKE), ltok[p]) \
      :: kind[p] == RELEASE -> j = owner[p]; release(slot[p]%3, j, 2) \
      :: else \
      fi; \
      assert(!withdrawn[p] || who[slot[p]%3] != owner[p]); /* nothing is left */ \
      if :: awaited[p] -> answer[p] = r; number[p] = rn :: else -> nothing_late(p) fi; r = NOTHING; rn = 0; j = 0 } \
  :: d_step { kind[p] != NOTHING && !withdrawn[p] && kind[p] != RELEASE && !IN_USE(owner[p]) -> rn = slot[p]%3; j = owner[p]; release(rn, j, 2); rn = 0; j = 0 } \
  :: d_step { answer[p] != NOTHING -> j = slot[p]; asks[j] = false; awaited[p] = false; \
      take_in(j, kind[p], answer[p], age[p], ltok[p], number[p]); nothing_late(p); j = 0 } \
  :: d_step { kind[p] != NOTHING -> if :: awaited[p] -> j = slot[p]; asks[j] = false; j = 0 :: else fi; nothing_late(p) } \
  :: d_step { awaited[p] && answer[p] == NOTHING -> j = slot[p]; asks[j] = false; j = 0; awaited[p] = false; age[p] = 0 }
  LATES(0)
#if LATE>1
  LATES(1)
#endif
#endif
  od
}

#if LATE>1
#define A_PLACE (kind[0] == NOTHING || kind[1] == NOTHING)
#define PLACE (kind[0] == NOTHING -> 0 : 1)
#elif LATE
#define A_PLACE (kind[0] == NOTHING)
#define PLACE 0
#endif
#if FAULT==REVIVE || FAULT==RENEW_DEAD
#define IS_DEAD(x) dead[x]
#else
#define IS_DEAD(x) false
#endif
#define MAY_ASK(x) (GOES_ON((x)/3) && !asks[x] && vote[x] == 0 && !IS_DEAD(x))
#define MAY_RENEW(x) (GOES_ON((x)/3) && !asks[x] && ((vote[x] > 0 && (vote[x] < TTL || NEWS(x))) || (FAULT==RENEW_DEAD && IS_DEAD(x))))

proctype client(byte c) PROVIDED {
end:
  do
#define ASKS(x) \
  :: d_step { MAY_ASK(x) -> acquire((x)%3, OWNER(x)); take_in(x, ACQUIRE, r, 0, 0, rn); r = NOTHING; rn = 0 } \
  :: d_step { MAY_RENEW(x) -> rn = CARRIES((x)/3); renew((x)%3, OWNER(x), false, rn); take_in(x, RENEW, r, 0, rn, 0); r = NOTHING; rn = 0 } \
  :: d_step { IS_DEAD(x) || st[c] == WAIT && (vote[x] > 0 || asks[x] || who[(x)%3] == OWNER(x)) -> next_owner(x) }
  ASKS(SLOT(c, 0))
  ASKS(SLOT(c, 1))
  ASKS(SLOT(c, 2))
#if LATE
#define ASKS_LATE(x) \
  :: d_step { MAY_ASK(x) && A_PLACE -> i = PLACE; late(i, ACQUIRE, x, 0); i = 0 } \
  :: d_step { MAY_RENEW(x) && A_PLACE -> i = PLACE; rn = CARRIES((x)/3); late(i, RENEW, x, rn); i = 0; rn = 0; written(x) }
  ASKS_LATE(SLOT(c, 0))
  ASKS_LATE(SLOT(c, 1))
  ASKS_LATE(SLOT(c, 2))
#endif
#if FAULT==SAME_ID
#define AGAIN(x) :: d_step { st[c] == WAIT && vote[x] > 0 && !asks[x] && A_PLACE -> i = PLACE; late(i, RELEASE, x, 0); awaited[i] = false; asks[x] = false; i = 0; vote[x] = 0 }
  AGAIN(SLOT(c, 0))
  AGAIN(SLOT(c, 1))
  AGAIN(SLOT(c, 2))
#endif
#if FAULT==EVENT_COUNTS
#define HEARS(x) :: d_step { msg[x] && vote[x] == 0 && GOES_ON(c) -> msg[x] = false; vote[x] = GT; promises() }
  HEARS(SLOT(c, 0))
  HEARS(SLOT(c, 1))
  HEARS(SLOT(c, 2))
#endif
  :: d_step { st[c] == WAIT && COMPLETE(c) -> hand_out(c) }
  :: d_step { st[c] == HOLD && MAJORITY(c) -> end_claim(c) }                             /* it unlocks */
  :: d_step { st[c] == HOLD && ended[c] -> end_claim(c) }                                /* it notices that it has ended */
  od
}

init { atomic { run environment(); run client(0); run client(1) } }
#endif

#if LIVE
/* Each client asks each node at most once in a tick. A node dies, a client is cut off from a node and perhaps not
   for ever, a client dies: each at most once, at any time. The bound counts from the last of these. */
bool heard[6], gone[2], dies, cuts;
byte down = 3, cut = 6;       /* the node that died; the slot in which the client does not reach the node */
byte waited[2], held[2], door[2] = 3;

#define REACHES(x) ((x)%3 != down && (x) != cut)
#define CAN(c) (REACHES(3*(c)) + REACHES(3*(c)+1) + REACHES(3*(c)+2) >= 2)
#define FIRST(c) (REACHES(3*(c)) -> 0 : (REACHES(3*(c)+1) -> 1 : 2))
#if FAULT==STICKY_DOOR
#define DOOR(c) (door[c] < 3 && REACHES(SLOT(c, door[c])) -> door[c] : FIRST(c))
#else
#define DOOR(c) FIRST(c)
#endif
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
  :: who[(x)%3] == OWNER(x) && REACHES(x) -> rn = (QUEUES(1-(x)/3, (x)%3) -> 1-(x)/3 : 2); j = OWNER(x); release((x)%3, j, rn); rn = 0; j = 0
  :: else
  fi;
  next_owner(x)
}

proctype lives(byte c) {
  do
#define LIVES_AT(n) \
  :: d_step { TO_ASK(c, n) -> heard[SLOT(c, n)] = true; if :: door[c] == 3 -> door[c] = FIRST(c) :: else fi; \
      if \
      :: vote[SLOT(c, n)] > 0 -> renew(n, OWNER(SLOT(c, n)), false, 0); take_in(SLOT(c, n), RENEW, r, 0, 0, 0) \
      :: else -> acquire(n, OWNER(SLOT(c, n))); take_in(SLOT(c, n), ACQUIRE, r, 0, 0, 0) \
      fi; r = NOTHING } \
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
