/* SPDX-License-Identifier: Apache-2.0

   The lock protocol of asynclock as built, for one key. README.md beside this
   file says what is modelled and what is not; run.sh, with which sizes it is
   checked and which faults have to be found.

   Time is discrete and passes between any two steps, so every client may be
   paused, and everything sent be under way, for any length. Sizes:
     N clients, K owner ids for each, K0 for the first, TTL and G (grant TTL), DL (how long a
     silent waiter counts as alive), MAXTOK (runs end when the counter is there).
   Switches, 0 or 1 unless said otherwise:
     CRASH   clients may die at any step
     LOCAL   how many times a client may pass the key on inside
     CLOCK   tokens have the clock as their floor; TMAX: runs end at that time
     AHEAD   what the counter says at the start, or the vacancy
     STRAY   what was given up may arrive all the same
     RENEWAL leases are renewed
     FORCE   an operator takes the key by force, once
     LOSS    how many messages may be lost, or waiters be out of reach; 255: any
             number
     FORGET  the server may forget its last writes, once: another one goes on with
             what it had at some earlier moment, its clock SKEW ticks behind at most.
             Tokens have the clock as their floor, which is ahead of every token given
     ENDED   with FORGET, somebody may end the grace by hand, once, if nothing was lost. The other
             server's clock may lag behind all tokens, until the grace would be over by itself.
             ENDED is how much larger the mark is than the greatest token from before. With LIVE,
             nothing is lost, and the grace is ended at once
     BEGUN   the run begins with a holder, a waiter, and the other server cut off
     VACANCY a release that nobody waits for leaves a vacancy, and a client that has seen the
             server grant may take a free key. The run begins with a vacancy, or with a holder
     LIVE    time waits for whoever has something to do, CRASH clients may die,
             a lease is held for HOLDS ticks, everyone is served within BOUND
     DISTANT with LIVE, how many ticks the answers to client 0 take. It is not served
             if they take too long, but everyone else is
     FAULT   breaks one rule; a name from the list below
     TRACE   a simulation writes down what clients do, for trace.sh
     GOAL    with TRACE: a search finds a run that gets there */
#ifndef N
#define N 2
#endif
#ifndef K
#define K 1
#endif
#ifndef K0
#define K0 K
#endif
#ifndef TTL
#define TTL 3
#endif
#ifndef G
#define G 2
#endif
#ifndef DL
#define DL 1
#endif
#ifndef MAXTOK
#define MAXTOK 5
#endif
#ifndef TMAX
#define TMAX 4
#endif
#ifndef AHEAD
#define AHEAD 0
#endif
#ifndef CLOCK
#define CLOCK 0
#endif
#ifndef CRASH
#define CRASH 0
#endif
#ifndef FORCE
#define FORCE 0
#endif
#ifndef FORGET
#define FORGET 0
#endif
#ifndef SKEW
#define SKEW 0
#endif
#ifndef LIVE
#define LIVE 0
#endif
#ifndef DISTANT
#define DISTANT 0
#endif
#ifndef LOCAL
#define LOCAL 0
#endif
#ifndef RENEWAL
#define RENEWAL 0
#endif
#ifndef STRAY
#define STRAY 0
#endif
#ifndef HOLDS
#define HOLDS 1
#endif
#ifndef LOSS
#define LOSS 255
#endif
#ifndef BOUND
#define BOUND 255
#endif
#ifndef BEGUN
#define BEGUN 0
#endif
#ifndef VACANCY
#define VACANCY 0
#endif
#ifndef ENDED
#define ENDED 0
#endif

/* The rules, each of which FAULT may break. */
#define SOUND 0
#define NO_W4 1          /* grant messages are believed however old they are */
#define RECEIPT_REPLY 2  /* W3: trust counts from the receipt of a reply */
#define RECEIPT_MSG 3    /* W5: trust counts from the receipt of a message */
#define NO_DEADLINE 4    /* a holder ignores its trust deadline */
#define OLD_TTL 5        /* a repeated acquire says granted and leaves the TTL */
#define NO_GONE 6        /* uncertain withdrawals are not remembered */
#define SURE 7           /* a release after a grant is never uncertain */
#define NO_OWNER 8       /* a release does not check which owner holds the key */
#define REVIVE 9         /* renew brings a missing holding back */
#define TOLD 10          /* a waiter is notified before it is found unreachable */
#define NO_WRITEBACK 11  /* a release does not say which token was used last */
#define SPEND 12         /* local passing ignores how much time has passed */
#define UNCLOCKED 13     /* local passing ignores that the counter is ahead */
#define NO_RAISE 14      /* force does not raise the counter */
#define NO_HEARTBEAT 15  /* waiters trust that a message comes */
#define NO_PASS 16       /* acquire leaves a free key's queue alone */
#define GRACE_OWN 17     /* a waiter that finds its own record in the grace is granted the key */
#define OLD_MARK 18           /* a waiter after a loss learns the last token that the server knows */
#define NO_GRACE_GONE 19 /* a release in the grace is remembered only if uncertain */
#define NO_REASSERT 20   /* holders don't write anew what is missing */
#define NO_GRACE_AT_ALL 21 /* a server that has forgotten grants at once */
#define SHORT_GRACE 22   /* it waits for less than the longest TTL */
#define HAND_ON_ANY 23   /* any release hands on in the grace */
#define HAND_ON_TWICE 24 /* a release that was sent before does */
#define HAND_ON_LATE 25  /* a release whose record ends within the lag of the clock does */
#define HAND_ON_ENDED 27 /* a release of a lease that is not trusted any more does */
#define HAND_ON_DOUBT 26 /* a release of an owner whose renewal had no answer does */
#define LATE_SURE 28     /* a grant that comes too late is given back as if no other request could arrive */
#define KEEPS_ASKING 29  /* a grant that comes too late is asked for again */
#define VACANT_GONE 30   /* a vacancy stays when a withdrawn owner is remembered */
#define ANY_HISTORY 31   /* take does not look at the server's history */
#define EARLY_PERMIT 32  /* a client takes although it knows of no end of the grace */
#define VACANT_FIRST 33  /* a vacancy has the token of the grant, not the last one used */
#define TAKE_LOW 34      /* take does not compare its token with the vacancy's */
#define VACANT_QUEUE 35  /* a release leaves a vacancy although somebody waits */
#define VACANT_JOIN 36   /* a vacancy stays when somebody queues in the grace */
#define COUNTER_ONLY 37  /* the slow scripts don't count the vacancy's token */
#define TAKE_QUEUE 38    /* take does not look at the queue, if there is no vacancy */
#define TAKE_GONE 39     /* likewise at withdrawn owners */
#define TAKE_COUNTER 40  /* likewise at the counter */
#define VACANT_BESIDE 41 /* a release leaves a vacancy beside withdrawn owners */
#define END_LOST 42      /* the grace is ended although something was lost */
#define END_LOW 43       /* tokens after the end are the clock's, which may not be past the mark */
#define END_PERMIT 44    /* a client may take as soon as the grace was ended */
#define END_NO_FLAG 45   /* who queues after the end has no flag, although its mark is the end of the grace */
#define END_OTHER 46     /* an end counts whatever history it was about */
#define END_ANEW 47      /* holdings are still written anew after the end */
#define END_AHEAD 48     /* the other server's clock is ahead by SKEW ticks at most, so that its records end earlier */
#define END_WAITS 49     /* likewise, and after the end nothing is granted for as long as the clock is ahead */
#define END_VACANT 50    /* as END_PERMIT, but only beside a vacancy. It breaks no promise */
#ifndef FAULT
#define FAULT SOUND
#endif

#if FAULT==NO_GRACE_AT_ALL
#define GRACE 0
#elif FAULT==SHORT_GRACE
#define GRACE (TTL-1)
#else
#define GRACE TTL              /* ticks */
#endif

#if FAULT==HAND_ON_LATE || FAULT==HAND_ON_ANY || !defined(SKEW)
#define MARGIN 0
#else
#define MARGIN SKEW           /* ticks that the record of who hands on must last */
#endif

#define NT (N*K)
#define NOBODY 255
#if !VACANCY || BEGUN
#define FIRST 0               /* the token of the lease before the run, which left a vacancy */
#elif AHEAD
#define FIRST AHEAD
#else
#define FIRST 1
#endif

/* A trace has a line for each step of a client: its number, what it does, what it sends, and its state
   afterwards. In searches these are nothing. LATE is how many of the last ticks are perhaps too few for a
   lease: the code has margins, and gives no answer back of which a tick of 2 or 3 is left. */
#ifdef TRACE
mtype = { begins, asks, hears, reads, loses, leaves, renews, unlocks, expires, passes, released, repeats, dies };
#define DOES(c, what) ; printf("%d %e", c, what)
#define WITH(x) ; printf(" %d", x)
#define NAMED(x) ; printf(" %e", x)
#define SENDS(what, o, tok) ; printf(" > %e %d %d", what, o, tok)
#define FLAGS(x, y, z) ; printf(" %d %d %d", x, y, z)
#define ENDS(c) ; printf(" : %e %d %d %d\n", st[c], gen[c], used[c], trust[c])
#define TICKS printf("tick\n");
#define LATE 0
bool rare;                    /* what happens too often in a simulation may happen now */
#define RARELY && rare
bool anew;                    /* a holder was granted the key anew */
#define ANEW anew = true;
#else
#define DOES(c, what)
#define WITH(x)
#define NAMED(x)
#define SENDS(what, o, tok)
#define FLAGS(x, y, z)
#define ENDS(c)
#define TICKS
#define LATE 1
#define RARELY
#define ANEW
#endif

mtype = { IDLE, WAIT, HOLD, DONE, DEAD };           /* clients */
mtype = { NONE, ACQUIRE, RENEW, RELEASE };          /* requests */
mtype = { GRANTED, WAITING, GONE, OK, LOST };       /* answers */

/* The server: record, counter, queue, withdrawn owners. Owners count from 0. */
byte lock = NOBODY, left, token;
bool clocked;                 /* the token was the clock's time (flag t) */
byte last = (VACANCY -> 0 : AHEAD), time = (FIRST > 0);
bool inq[NT], gone[NT];
byte ticket[NT], alive[NT], tickets;
#if VACANCY
byte vacant = FIRST;          /* the vacancy's token; 0: there is none */
byte stored;                  /* scratch: the counter, while last is the largest token known */
bool free;                    /* scratch: what look finds */
#endif

#if FORGET
/* What another server has, and whether it hears no more (1) or serves instead (2). */
byte forgot, b_lock, b_left, b_token, b_last; bool b_inq[NT], b_gone[NT]; byte b_alive[NT];
bool noticed; byte grace, past; /* epoch.lua */
bool fast;                    /* scratch: this is release_fast.lua */
byte clock = FIRST;           /* the greatest token that any server gave */
bool before[N];               /* that release was answered before the loss */
#if SKEW
byte lagged;
#endif
#if VACANCY
byte b_vacant;
#endif
#if ENDED
/* After an end by hand, grace is how long the clock is not yet past the mark. clock is the least that the
   clock of the present server may show, less one. */
bool ended, lost;
bool flagged[NT];             /* flag g of a waiter */
bool ahead;                   /* scratch: the token is not the clock's */
#if FAULT==END_WAITS
#define NO_GRACE (grace == 0 || (ended && lagged == 0))
#define IN_GRACE (grace > 0 && !(ended && lagged == 0))
#else
#define NO_GRACE (grace == 0 || ended)
#define IN_GRACE (grace > 0 && !ended)
#endif
#else
#define NO_GRACE (grace == 0)
#define IN_GRACE grace > 0
#endif
#else
#define NO_GRACE true
#endif

/* Clients. */
mtype st[N] = IDLE;
byte gen[N];                  /* which of its owners is in use */
byte age[N], mark[N];         /* time since base, W2; greatest token known to be over, W4 */
bool unsure[N];               /* some request of this owner had no answer */
bool doubt[N];                /* some renewal of it had none */
byte trust[N], first[N], used[N]; /* a tenure's trust, tokens of its grant and of its last lease */
bool spare[N]; byte room[N], passed[N]; /* cohort handoff: may tokens be spent, how many, how often yet */

/* Messages: one request or answer of the present owner, one withdrawal, one grant
   message for each client; and one request that was given up and may still arrive. */
bool asked[N], answered[N]; mtype kind[N] = NONE; byte sent[N], spent[N];
mtype answer[N] = NONE; byte number[N]; bool exact[N];
bool leaving[N], left_ok[N], unsaid[N], again[N], sure[N]; byte whose[N], wused[N], wsent[N];
mtype wanswer[N] = NONE; byte wnumber[N]; bool wexact[N];
bool riding[N];               /* the present owner's first request rides on that withdrawal */
byte msg[N] = NOBODY, msgtoken[N]; bool msgexact[N];
mtype stray = NONE; byte strayowner, strayused; bool strayunsure, strayagain, straysure;

/* What is checked. */
bool over[NT];                /* the owner's withdrawal was confirmed */
byte top = FIRST;             /* the greatest token that a lease ever had */
byte forced = NOBODY, ceiling; bool force_done; /* whom force took the key from; its tokens stay below */
bool stop;                    /* the run is as long as it may be */

#if LOSS<255
byte losses;
#endif
#if LIVE
bool heard[N]; byte waited[N], held[N], crashes;
#endif

#define OWNER(c) ((c)*K+gen[c])
#define CLIENT(o) ((o)/K)
#define TRUSTS(c) (st[c]==HOLD && trust[c]>0 && OWNER(c)!=forced)
#if N>2
#define EXCLUSIVE (!((TRUSTS(0)&&TRUSTS(1)) || (TRUSTS(0)&&TRUSTS(2)) || (TRUSTS(1)&&TRUSTS(2))))
#else
#define EXCLUSIVE (!(TRUSTS(0)&&TRUSTS(1)))
#endif
#if K>1
#define QUEUES(c) (inq[(c)*K] || inq[(c)*K+1])
#else
#define QUEUES(c) inq[c]
#endif

/* ---- the scripts ---- */

byte i, head, next;           /* scratch, always 0 between steps */
byte deaf = 0;                /* bits: who can't be reached; keep: the older message stays */
bool keep;
mtype r = NONE; byte rn; bool rx;

#if VACANCY
/* load reads the state: a token may be known by the record alone, or by the vacancy. Without
   a clock in the model, last is the clock, too. Then the counter always has it. */
inline load() {
  stored = last;
  if :: lock != NOBODY && token > last -> last = token :: else fi;
#if FAULT!=COUNTER_ONLY
  if :: vacant > last -> last = vacant :: else fi
#endif
}
inline wrote() { stored = last }       /* SET counter last */
#if ENDED
inline unload() { last = stored; stored = 0; ahead = false }
#elif CLOCK || FORGET
inline unload() { last = stored; stored = 0 }
#else
inline unload() { stored = 0 }
#endif

/* Who queues, or is remembered as withdrawn, ends a vacancy. */
inline vacate() { if :: vacant != 0 -> vacant = 0; wrote() :: else fi }
#else
inline load() { skip }
inline wrote() { skip }
inline unload() { skip }
inline vacate() { skip }
#endif
#if VACANCY
inline no_vacancy() { vacant = 0 }
#else
inline no_vacancy() { skip }
#endif

#if ENDED
/* The clock is past the mark when the grace would be over by itself. Who looks at the epoch makes no token
   below the mark before. fast: the script does not look, and takes the clock's time if that is larger than
   all that it knows. */
#define MARKED (forgot == 2 && noticed && (grace == 0 || (!fast && FAULT!=END_LOW)))
#define CLOCKED_HERE (forgot != 2 || !noticed || grace == 0 || fast || FAULT==END_LOW)
inline count() {
  ahead = !CLOCKED_HERE || (!fast && last > clock && (!MARKED || last > past));
  last++;
  if :: clock >= last -> last = clock+1 :: else fi;
  if :: MARKED && past >= last -> last = past+1 :: else fi;
  if :: !ahead -> clock = last :: else fi;
  wrote();
  if :: last >= MAXTOK -> stop = true :: else fi
}
#else
inline count() {
  last++;
#if FORGET
  if :: clock >= last -> last = clock+1 :: else fi;
  clock = last;
#endif
#if CLOCK
  if :: time > last -> last = time :: else fi;
  clocked = (last == time);
#endif
  wrote();
  if :: last >= MAXTOK -> stop = true :: else fi
}
#endif

inline grant(o, ttl) { count(); lock = o; left = ttl; token = last; no_vacancy() }

inline tell(o) {
  if :: !(keep && msg[CLIENT(o)] != NOBODY) ->
    msg[CLIENT(o)] = o; msgtoken[CLIENT(o)] = last; msgexact[CLIENT(o)] = clocked
  :: else fi
}

#if ENDED
/* A waiter that is granted the key by a message can believe it, whatever it was told before. */
inline believed(c, o) {
  assert(st[c] != WAIT || OWNER(c) != o || last > mark[c]);
  assert(st[c] != WAIT || OWNER(c) != o || !answered[c] || answer[c] != WAITING || last > number[c]) /* mark[c] is to be that */
}
#endif

/* choose and settle of lock.lua. The key is free; next becomes its holder by
   message, or NOBODY. */
inline settle(self) {
  lock = NOBODY; left = 0; next = NOBODY;
  do
  :: next == NOBODY ->
    head = NOBODY; i = 0;
    do :: i < NT -> if :: inq[i] && (head == NOBODY || ticket[i] < ticket[head]) -> head = i :: else fi; i++
       :: else -> break od;
    if
    :: head == NOBODY -> break
    :: head != NOBODY && self != NOBODY && head != self && ticket[self] != 0 && ticket[self] < ticket[head] -> break
    :: head != NOBODY && head == self -> inq[head] = false; break
    :: else ->
      inq[head] = false;
      if
      :: alive[head] > 0 && !((deaf >> CLIENT(head)) & 1) -> next = head
      :: else ->
#if FAULT==TOLD
        if :: alive[head] > 0 -> last++; tell(head); last-- :: else fi;
#endif
        skip
      fi
    fi
  :: else -> break
  od;
#if ENDED
  if :: next != NOBODY -> grant(next, G); believed(CLIENT(next), next); tell(next) :: else fi;
#else
  if :: next != NOBODY -> grant(next, G); tell(next) :: else fi;
#endif
  next = 0; head = 0; i = 0
}

/* first_use grants a key that nobody waits for. The counter need not know a token that is the
   clock's time. */
inline first_use(o) {
#if VACANCY
  head = stored;
  grant(o, TTL);
#if CLOCK
  if :: clocked -> stored = head :: else fi;
#elif ENDED
  if :: !ahead -> stored = head :: else fi;
#else
  stored = head;
#endif
  head = 0
#else
  grant(o, TTL)
#endif
}

#if FAULT==VACANT_QUEUE
inline pass() { lock = NOBODY; left = 0 }
#else
inline pass() { settle(NOBODY) }
#endif

#if ENDED
/* The clock of the server that took over may show more than all that a script knows, and less than the mark. */
#define CLOCK_IS_AHEAD (!noticed || grace == 0 || (last < past && clock < past))
#endif

#if VACANCY
/* An ACQUIRE with a permission says in spent of which history it is: 1 or 2. */
#if FORGET && FAULT!=ANY_HISTORY
#define SAME_HISTORY(permit) (permit == 1+(forgot == 2))
#else
#define SAME_HISTORY(permit) (permit != 0)
#endif
#if CLOCK && FAULT!=TAKE_LOW
#define CLOCK_RISES (time > vacant)
#else
#define CLOCK_RISES true
#endif
#if CLOCK && FAULT!=TAKE_COUNTER
#define NO_COUNTER (stored == 0)
#elif ENDED
#define NO_COUNTER (stored == 0)
#else
#define NO_COUNTER true
#endif
#if FAULT==TAKE_QUEUE
#define NOT_BESIDE(o) (!gone[o])
#elif FAULT==TAKE_GONE
#define NOT_BESIDE(o) (!inq[o])
#else
#define NOT_BESIDE(o) (!inq[o] && !gone[o])
#endif

/* look finds whether take grants the key. Beside a vacancy it looks at nothing else. */
inline look(permit) {
  free = (SAME_HISTORY(permit) && lock == NOBODY && CLOCK_RISES);
#if FAULT==END_PERMIT || FAULT==END_VACANT
  if :: forgot == 2 && grace > 0 && (!CLOCK_IS_AHEAD || (FAULT==END_VACANT && vacant == 0)) -> free = false :: else fi;
#endif
  if
  :: free && vacant == 0 ->
    do :: i < NT && NOT_BESIDE(i) -> i++ :: else -> break od;
    free = (i == NT && NO_COUNTER); i = 0
  :: else -> skip
  fi
}

/* take grants a free key. The token is the clock's, or beside a vacancy one that the client chose: it may
   be as small as the rules allow. */
#if FAULT==END_PERMIT || FAULT==END_VACANT
#define LEAST ((forgot == 2 && grace == 0 && past > vacant -> past : vacant)+1)
#elif FORGET
#define LEAST ((forgot == 2 && past > vacant -> past : vacant)+1)
#else
#define LEAST (vacant+1)
#endif
inline take(o) {
  if
  :: vacant != 0 ->                            /* chosen */
    i = LEAST; vacant = 0; lock = o; left = TTL; token = i; i = 0;
#if FORGET
    if :: clock < token -> clock = token :: else fi;
#endif
#if CLOCK
    clocked = true;
#else
    if :: last < token -> last = token :: else fi;
#endif
    wrote();
    if :: token >= MAXTOK -> stop = true :: else fi
  :: true -> skip                              /* the clock's */
  fi;
  if
  :: lock == o -> skip
  :: else ->
#if CLOCK
    last = time-1;
#endif
#if FAULT==END_PERMIT || FAULT==END_VACANT
    fast = true; first_use(o); fast = false
#else
    first_use(o)
#endif
  fi;
  r = GRANTED; rn = token; rx = clocked; free = false
}
#endif

/* leave_vacancy is the end of a release, if nobody waits. */
inline leave_vacancy(unc) {
#if VACANCY
  i = 0;
#if FAULT!=VACANT_QUEUE
  do :: i < NT && !inq[i] -> i++ :: else -> break od;
#else
  i = NT;
#endif
#if FAULT!=VACANT_BESIDE
  if :: i == NT -> i = 0; do :: i < NT && !gone[i] -> i++ :: else -> break od :: else fi;
#endif
  if
#if FORGET
  :: lock == NOBODY && i == NT && (fast || (!unc && NO_GRACE)) ->
#else
  :: lock == NOBODY && i == NT && !unc ->
#endif
    vacant = (FAULT==VACANT_FIRST -> token : last); stored = 0
  :: else -> wrote()
  fi;
  i = 0
#else
  skip
#endif
}

inline remember(o) {
  gone[o] = true;
#if FAULT!=VACANT_GONE
  vacate()
#endif
}

/* notice is look and note of epoch.lua. */
inline notice() {
#if FORGET
#if ENDED
  if :: forgot == 2 && !noticed -> noticed = true; grace = GRACE; ended = (ended && FAULT==END_OTHER);
    if :: clock+ENDED > past -> past = clock+ENDED :: else fi
  :: else fi
#else
  if :: forgot == 2 && !noticed -> noticed = true; grace = GRACE; past = clock :: else fi
#endif
#else
  skip
#endif
}

inline acquire(o) {
  notice();
  if
#if FAULT==GRACE_OWN
  :: lock == o ->
#else
  :: lock == o && NO_GRACE ->
#endif
#if FAULT!=OLD_TTL
    if :: left < TTL -> left = TTL :: else fi;
#endif
    r = GRANTED; rn = token; rx = clocked
  :: else ->
   if
   :: gone[o] -> r = GONE
   :: else ->
#if FAULT!=NO_PASS
    if :: lock == NOBODY && NO_GRACE -> settle(o);
      if :: lock == NOBODY -> first_use(o) :: else fi
    :: else fi;
#else
    if :: lock == NOBODY -> i = 0; do :: i < NT && !(inq[i] && i != o) -> i++ :: else -> break od;
      if :: i == NT -> inq[o] = false; grant(o, TTL) :: else fi; i = 0
    :: else fi;
#endif
    if
    :: lock == o && NO_GRACE -> r = GRANTED; rn = token; rx = clocked
    :: else ->
#if FAULT!=VACANT_JOIN
      vacate();
#endif
      if :: ticket[o] == 0 -> tickets++; ticket[o] = tickets :: else fi;
#if ENDED
      if :: lock != o -> flagged[o] = (FAULT==END_NO_FLAG -> IN_GRACE : grace > 0) :: else fi;
#endif
      if :: lock != o -> inq[o] = true; alive[o] = DL :: else fi;
      r = WAITING; rn = last;
#if FORGET && FAULT!=OLD_MARK
      if :: past > rn -> rn = past :: else fi
#endif
    fi
   fi
  fi
}

/* one_state: beside a vacancy there is no holder, no waiter, no withdrawn owner and no counter. */
#if VACANCY && FAULT==SOUND
inline one_state() {
  assert(vacant == 0 || lock == NOBODY);
#if CLOCK || FORGET
  assert(vacant == 0 || last == 0);
#endif
  do :: i < NT -> assert(vacant == 0 || (!inq[i] && !gone[i])); i++ :: else -> break od; i = 0
}
#else
inline one_state() { skip }
#endif

#if FAULT==END_ANEW
#define MAY_WRITE (grace > 0)
#elif FORGET
#define MAY_WRITE IN_GRACE
#endif

#if ENDED
/* release_fast.lua hands the key on to the first waiter alone, if that is alive, and has no flag. */
inline first_release(certain) {
  head = NOBODY; i = 0;
  do :: i < NT -> if :: inq[i] && (head == NOBODY || ticket[i] < ticket[head]) -> head = i :: else fi; i++
     :: else -> break od;
  if
  :: head == NOBODY -> fast = certain
  :: else -> fast = (certain && left > MARGIN && alive[head] > 0 && !((deaf >> CLIENT(head)) & 1) && !flagged[head] && CLOCK_IS_AHEAD)
  fi;
  head = 0; i = 0
}
#endif

inline execute(k, o, tok, unc, more, certain) {
  if :: lock != NOBODY && left == 0 -> lock = NOBODY :: else fi;
  load();
  if
  :: k == ACQUIRE ->
#if VACANCY
    look(tok);
    if :: free -> take(o) :: else -> acquire(o) fi
#else
    acquire(o)
#endif
  :: k == RENEW ->
    if
    :: lock == o ->
      if :: left < TTL -> left = TTL :: else fi;
      if :: tok > token -> token = tok; if :: tok > last -> last = tok; wrote() :: else fi :: else fi;
      r = OK
#if FAULT==REVIVE
    :: lock == NOBODY -> lock = o; left = TTL; token = tok; r = OK
#endif
    :: else ->
      notice();                                 /* reassert.lua */
#if FORGET && FAULT!=NO_REASSERT
      if
      :: MAY_WRITE && !gone[o] && (lock == NOBODY || token < tok) ->
        lock = o; left = TTL; token = tok; inq[o] = false;
        if :: tok > last -> last = tok :: else fi;
#if VACANCY
        no_vacancy(); wrote();
#endif
        r = OK
      :: else -> r = LOST
      fi
#else
      r = LOST
#endif
    fi
  :: k == RELEASE ->
    if
#if FAULT==NO_OWNER
    :: lock != NOBODY ->
#else
    :: lock == o ->
#endif
      if :: token > last -> last = token :: else fi;
#if FAULT!=NO_WRITEBACK
      if :: tok > last -> last = tok :: else fi;
#endif
#if FORGET
#if ENDED
      first_release(certain);
#elif VACANCY
      i = 0; do :: i < NT && !inq[i] -> i++ :: else -> break od;
      fast = (certain && (i == NT || left > MARGIN)); i = 0; /* who hands nothing on needs no margin */
#else
      fast = (certain && left > MARGIN);         /* release_fast.lua */
#endif
      if :: fast || FAULT==HAND_ON_ANY -> skip :: else -> notice() fi;
      if :: IN_GRACE && !fast && FAULT!=HAND_ON_ANY -> lock = NOBODY; left = 0 :: else -> pass() fi;
#else
      pass();
#endif
      leave_vacancy(unc)
    :: else -> notice(); inq[o] = false; alive[o] = 0
    fi;
#if FAULT!=NO_GONE
    if :: unc -> remember(o) :: else fi;
#endif
#if FORGET && FAULT!=NO_GRACE_GONE
    if :: IN_GRACE && !fast -> remember(o) :: else fi;
#endif
#if FORGET
    fast = false;
#endif
    r = OK;
    if :: more -> acquire(o+1) :: else fi
  fi;
  unload();
  assert(lock == NOBODY || !over[lock]);        /* nothing left over: no holder that nobody knows, */
  i = 0; do :: i < NT -> assert(!(over[i] && inq[i])); i++ :: else -> break od; /* and no such waiter */
#if ENDED
  i = 0; do :: i < NT -> if :: !inq[i] -> flagged[i] = false :: else fi; i++ :: else -> break od;
#endif
  i = 0; deaf = 0; keep = false;
  one_state()
}

/* ---- the clients ---- */

#if FAULT==SPEND
#define HAS_TOKEN(c) spare[c]
#elif FAULT==UNCLOCKED
#define HAS_TOKEN(c) (room[c] > 0)
#else
#define HAS_TOKEN(c) (spare[c] && room[c] > 0)
#endif

inline nothing_stray() { stray = NONE; strayowner = 0; strayused = 0; strayunsure = false; strayagain = false; straysure = false }
inline nothing_asked(c) { asked[c] = false; answered[c] = false; kind[c] = NONE; sent[c] = 0; spent[c] = 0; answer[c] = NONE; number[c] = 0; exact[c] = false }
inline nothing_leaves(c) { leaving[c] = false; left_ok[c] = false; unsaid[c] = false; sure[c] = false; again[c] = false; whose[c] = 0; wused[c] = 0; wsent[c] = 0; wanswer[c] = NONE; wnumber[c] = 0; wexact[c] = false }

inline ask(c, k, tok) { nothing_asked(c); asked[c] = true; kind[c] = k; spent[c] = tok SENDS(k, gen[c], tok) }

/* A request is given up. Its sender can't know whether it arrives yet. */
inline give_up(c) {
  if :: STRAY && asked[c] && !answered[c] && stray == NONE -> stray = kind[c]; strayowner = OWNER(c); strayused = spent[c] :: else fi;
  nothing_asked(c)
}
inline give_up_leaving(c) {
  if :: STRAY && leaving[c] && !left_ok[c] && stray == NONE ->
    stray = RELEASE; strayowner = whose[c]; strayused = wused[c]; strayunsure = unsaid[c]; strayagain = again[c]; straysure = sure[c]
  :: else fi;
  nothing_leaves(c)
}

inline no_lease(c) { trust[c] = 0; first[c] = 0; used[c] = 0; spare[c] = false; room[c] = 0; age[c] = 0; mark[c] = 0; unsure[c] = false; doubt[c] = false; riding[c] = false
#if LIVE
  ; waited[c] = 0; held[c] = 0; heard[c] = false
#endif
}

inline next_owner(c) {
  no_lease(c);
  if :: gen[c]+1 < (c==0 -> K0 : K) -> gen[c]++; st[c] = IDLE :: else -> st[c] = DONE fi
}

/* leave sends the release of the present owner; more: queue again in the same step. */
inline leave(c, more) {
  head = (unsure[c] || riding[c] || (asked[c] && kind[c] == ACQUIRE));
#if FAULT==SURE
  if :: st[c] == HOLD -> head = 0 :: else fi;
#endif
  next = used[c];
  i = (FORGET && st[c] == HOLD && (trust[c] > 0 || FAULT==HAND_ON_ENDED) && !more && !head && ((!doubt[c] && !asked[c]) || FAULT==HAND_ON_DOUBT));
  give_up(c); give_up_leaving(c) SENDS(RELEASE, gen[c], next) FLAGS(head, more, i);
  leaving[c] = true; whose[c] = OWNER(c); wused[c] = next; unsaid[c] = head; again[c] = more; sure[c] = i; i = 0;
  next_owner(c);
  if :: more -> st[c] = WAIT; riding[c] = true :: else fi;
  head = 0; next = 0
}

inline begin_lease(c, tok) {
  used[c] = tok;
  if
  :: OWNER(c) == forced -> assert(tok <= ceiling)
  :: else -> assert(tok > top); top = tok       /* tokens rise */
  fi
}

inline hold(c, tok, ex, howlong) {
  st[c] = HOLD; trust[c] = howlong; first[c] = tok; spare[c] = ex; room[c] = 0; age[c] = 0; mark[c] = 0;
  if :: OWNER(c) == forced && tok > ceiling -> forced = NOBODY :: else fi;   /* granted anew */
  begin_lease(c, tok)
}

/* take_in reads the answer ans to an acquire sent since ticks ago. */
inline take_in(c, ans, num, ex, since) {
  if
  :: st[c] == WAIT && ans == GRANTED ->
#if FAULT==RECEIPT_REPLY
    hold(c, num, ex, TTL)
#elif FAULT==KEEPS_ASKING
    if :: since < TTL -> hold(c, num, ex, TTL-since) :: else fi
#else
    if                                                                        /* W3 */
    :: since < TTL -> hold(c, num, ex, TTL-since)
    :: since+LATE >= TTL ->                          /* too little of it may be left */
#if FAULT==LATE_SURE
      unsure[c] = false;
#endif
      leave(c, false)
    fi
#endif
  :: st[c] == WAIT && ans == WAITING ->                                       /* W2 */
    if :: since < age[c] -> age[c] = since :: else fi;
    if :: num > mark[c] -> mark[c] = num :: else fi
  :: st[c] == WAIT && ans == GONE -> assert(false)                            /* nobody has withdrawn it */
  :: st[c] == HOLD && trust[c] > 0 && ans == GRANTED ->                       /* W6, confirmed */
    if
    :: num < first[c] || num > used[c] -> ANEW leave(c, false)
    :: else ->
      assert(top == used[c] || OWNER(c) == forced); /* nobody has had the key since */
      if :: since < TTL && TTL-since > trust[c] -> trust[c] = TTL-since :: else fi
    fi
  :: else -> skip
  fi
}

#if LOSS<255
#define MAY_LOSE (losses < LOSS)
#define LOSE losses++
#else
#define MAY_LOSE true
#define LOSE skip
#endif

/* Whom a handoff finds unreachable, and which of two messages is lost, is anybody's guess. */
inline guess() {
  if
  :: true
  :: MAY_LOSE && QUEUES(0) -> deaf = 1; LOSE
  :: MAY_LOSE && QUEUES(1) -> deaf = 2; LOSE
#if N>2
  :: MAY_LOSE && QUEUES(2) -> deaf = 4; LOSE
#endif
#if LOSS==255
  :: QUEUES(0) && QUEUES(1) -> deaf = 3
#endif
  :: MAY_LOSE && msg[0] != NOBODY && QUEUES(0) -> keep = true; LOSE
  :: MAY_LOSE && msg[1] != NOBODY && QUEUES(1) -> keep = true; LOSE
  fi
}

#define FAR(c) (DISTANT > 0 && c==0 && answered[c] && sent[c] < DISTANT)     /* the answer is on its way */
#if LIVE
#define ASKS(c) (asked[c] && !FAR(c))
#define IDLE_NOW(c) (st[c]==IDLE || st[c]==DONE || st[c]==DEAD || \
  (!ASKS(c) && !leaving[c] && msg[c]==NOBODY && ((st[c]==WAIT && (heard[c] || FAR(c))) || (st[c]==HOLD && trust[c]>0 && held[c]<HOLDS))))
#if N>2
#define TIME_MAY_PASS (IDLE_NOW(0) && IDLE_NOW(1) && IDLE_NOW(2) && !ASKS(0) && !ASKS(1) && !ASKS(2) && !leaving[0] && !leaving[1] && !leaving[2])
#else
#define TIME_MAY_PASS (IDLE_NOW(0) && IDLE_NOW(1) && !ASKS(0) && !ASKS(1) && !leaving[0] && !leaving[1])
#endif
#else
#define TIME_MAY_PASS true
#endif

proctype environment() provided (!stop) {
#if !LIVE || DISTANT
end:
#endif
  do
#ifdef TRACE
#ifdef GOAL
  :: GOAL -> assert(false)
#endif
  :: rare = true
  :: rare = false
  :: rare = false
  :: rare = false
#endif
#if LIVE && ENDED
  :: d_step { TIME_MAY_PASS && (forgot != 2 || (noticed && NO_GRACE)) ->  /* the grace is ended at once */
#else
  :: d_step { TIME_MAY_PASS -> TICKS                                /* a tick */
#endif
      if :: left > 0 -> left-- :: else fi;
#if FORGET
#if FAULT==END_WAITS
      if :: ended && lagged > 0 -> lagged-- :: else fi;
#endif
#if ENDED
      if :: grace > 0 -> grace--; if :: grace == 0 -> ended = false :: else fi :: else fi;
#else
      if :: grace > 0 -> grace-- :: else fi;
#endif
      if :: forgot == 1 && b_left > 0 -> b_left-- :: else fi;
      i = 0; do :: i < NT -> if :: forgot == 1 && b_alive[i] > 0 -> b_alive[i]-- :: else fi; i++ :: else -> break od;
#endif
      i = 0; do :: i < NT -> if :: alive[i] > 0 && inq[i] -> alive[i]-- :: else fi; i++ :: else -> break od;
      i = 0; do :: i < N ->
        if :: trust[i] > 0 -> trust[i]-- :: else fi;
        if :: st[i] == WAIT && age[i] < TTL -> age[i]++ :: else fi;
        if :: asked[i] && sent[i] < TTL -> sent[i]++ :: else fi;
        if :: leaving[i] && again[i] && wsent[i] < TTL -> wsent[i]++ :: else fi;
#if LOCAL
        if :: st[i] == HOLD && passed[i] < LOCAL && room[i] < LOCAL -> room[i]++ :: else fi;
#endif
#if LIVE
        heard[i] = false;
        if :: st[i] == WAIT && (DISTANT == 0 || i > 0) -> waited[i]++; assert(waited[i] <= BOUND) :: else fi;  /* everyone is served */
        if :: st[i] == HOLD -> held[i]++ :: else fi;
#endif
        i++ :: else -> break od;
#if CLOCK
      time++; if :: time >= TMAX -> stop = true :: else fi;
#endif
      i = 0 }
#if LIVE && ENDED
  :: d_step { forgot == 0 -> forgot = 2;                            /* another server takes over, and lacks nothing */
      i = 0; do :: i < NT -> over[i] = false; i++ :: else -> break od;
      i = 0; do :: i < N -> before[i] = left_ok[i]; i++ :: else -> break od;
      past = clock+ENDED; clock = 0; i = 0 }
#elif FORGET
  :: d_step { forgot == 0 -> forgot = 1;                            /* the other one hears no more */
      b_lock = lock; b_left = left; b_token = token; b_last = last;
#if VACANCY
      b_vacant = vacant;
#endif
      i = 0; do :: i < NT -> b_inq[i] = inq[i]; b_gone[i] = gone[i]; b_alive[i] = alive[i]; i++ :: else -> break od; i = 0 }
#if SKEW && FAULT!=END_AHEAD && FAULT!=END_WAITS
  :: d_step { forgot == 1 && lagged < SKEW && b_left > 0 -> lagged++; b_left++ } /* it lags */
#elif SKEW
  :: d_step { forgot == 1 && lagged < SKEW && b_left > 0 -> lagged++; b_left-- } /* it is ahead */
#endif
#if FAULT==END_OTHER
  :: d_step { forgot == 1 && !ended -> ended = true }               /* an earlier grace is ended; nobody sees that it is over */
#endif
  :: d_step { forgot == 1 -> forgot = 2;                            /* it takes over */
#if ENDED
      /* Something was lost if the server that took over has another state, or one that lasts less long. */
#if FAULT==END_AHEAD || FAULT==END_WAITS
      b_left = b_left+lagged;
#endif
      lost = (b_lock != lock || b_left < left || b_token != token || b_last != last);
#if FAULT==END_AHEAD || FAULT==END_WAITS
      b_left = b_left-lagged;
#endif
#if VACANCY
      lost = (lost || b_vacant != vacant);
#endif
      i = 0; do :: i < NT -> lost = (lost || b_inq[i] != inq[i] || b_gone[i] != gone[i]); i++ :: else -> break od;
      past = clock+ENDED; clock = 0;
#endif
      lock = b_lock; left = b_left; token = b_token; last = b_last;
#if VACANCY
      vacant = b_vacant; b_vacant = 0;
#endif
      i = 0; do :: i < NT -> inq[i] = b_inq[i]; gone[i] = b_gone[i]; alive[i] = b_alive[i]; over[i] = false;
        b_inq[i] = false; b_gone[i] = false; b_alive[i] = 0; i++ :: else -> break od;
      i = 0; do :: i < N -> before[i] = left_ok[i]; i++ :: else -> break od;
      b_lock = 0; b_left = 0; b_token = 0; b_last = 0; i = 0 }
#endif
#if ENDED
  /* Somebody looks, vouches that nothing was lost, and ends the grace. */
  :: d_step { forgot == 2 && noticed && grace > 0 && !ended && (!lost || FAULT==END_LOST) -> ended = true }
#endif
#if FORGET && (VACANCY || ENDED)
  :: d_step { forgot == 2 && !noticed -> notice() }                 /* a script for another key does it */
#endif
#if STRAY
  :: atomic { stray != NONE -> guess(); d_step {                    /* a request given up arrives after all */
      execute(stray, strayowner, strayused, strayunsure, strayagain, straysure);
      nothing_stray();
      r = NONE; rn = 0; rx = false; assert(EXCLUSIVE) } }
  :: d_step { stray != NONE -> nothing_stray() }
#endif
#if FORCE
  :: atomic { !force_done && lock != NOBODY && left > 0 -> guess(); d_step {
      force_done = true; forced = lock; load();
#if FAULT!=NO_RAISE
      if :: clocked && time+left > last -> last = time+left :: else fi;
#endif
      ceiling = last; settle(NOBODY); leave_vacancy(false); unload(); one_state(); deaf = 0; keep = false } }
#endif
  od
}

proctype client(byte c) provided (!stop) {
#if !LIVE || DISTANT
end:
#endif
  do
  /* The server gets to the requests, in any order. */
  :: atomic { asked[c] && !answered[c] -> guess(); d_step {
      execute(kind[c], OWNER(c), spent[c], false, false, false);
      answered[c] = true; answer[c] = r; number[c] = rn; exact[c] = rx; r = NONE; rn = 0; rx = false } }
  :: atomic { leaving[c] && !left_ok[c] -> guess(); d_step {
      execute(RELEASE, whose[c], wused[c], unsaid[c], again[c], sure[c]);
      left_ok[c] = true; wanswer[c] = r; wnumber[c] = rn; wexact[c] = rx; r = NONE; rn = 0; rx = false } }

  /* Requests, answers and messages are lost, or given up and late. */
  :: d_step { asked[c] && MAY_LOSE RARELY DOES(c, loses) -> if :: kind[c] == ACQUIRE -> unsure[c] = true :: else -> doubt[c] = FORGET fi; nothing_asked(c); LOSE ENDS(c) }
  :: d_step { msg[c] != NOBODY && MAY_LOSE RARELY -> msg[c] = NOBODY; msgtoken[c] = 0; msgexact[c] = false; LOSE }
  :: d_step { leaving[c] && left_ok[c] && MAY_LOSE RARELY DOES(c, repeats) -> /* said again, without the queueing */
      left_ok[c] = false; again[c] = false; if :: FAULT!=HAND_ON_TWICE -> sure[c] = false :: else fi; wsent[c] = 0; wanswer[c] = NONE; wnumber[c] = 0; wexact[c] = false;
      if :: riding[c] -> riding[c] = false; unsure[c] = true :: else fi; LOSE ENDS(c) }
#if STRAY
  :: d_step { asked[c] && !answered[c] && stray == NONE && MAY_LOSE RARELY DOES(c, loses) -> LOSE; if :: kind[c] == ACQUIRE -> unsure[c] = true :: else -> doubt[c] = FORGET fi; give_up(c) ENDS(c) }
  :: d_step { leaving[c] && !left_ok[c] && stray == NONE && MAY_LOSE RARELY DOES(c, repeats) -> LOSE;
      stray = RELEASE; strayowner = whose[c]; strayused = wused[c]; strayunsure = unsaid[c]; strayagain = again[c]; straysure = sure[c];
      again[c] = false; if :: FAULT!=HAND_ON_TWICE -> sure[c] = false :: else fi; wsent[c] = 0; if :: riding[c] -> riding[c] = false; unsure[c] = true :: else fi ENDS(c) }
#endif
#if LOSS && !LIVE
  :: d_step { leaving[c] && MAY_LOSE RARELY DOES(c, repeats) -> LOSE; nothing_leaves(c); if :: riding[c] -> riding[c] = false; unsure[c] = true :: else fi ENDS(c) }
#endif

  /* Answers and messages arrive. */
  :: d_step { answered[c] && st[c] != DEAD && !FAR(c) ->
      head = sent[c]; next = number[c]; rx = exact[c]; r = answer[c]
      DOES(c, hears) NAMED(kind[c]) NAMED(r) WITH(next) WITH(rx) WITH(head);
      if
      :: kind[c] == ACQUIRE -> nothing_asked(c); i = next; next = head; take_in(c, r, i, rx, next)
      :: kind[c] == RENEW && r == OK -> nothing_asked(c);
        if :: st[c] == HOLD && trust[c] > 0 && TTL-head > trust[c] -> trust[c] = TTL-head :: else fi
      :: else -> nothing_asked(c);
#if !FORCE
        assert(!TRUSTS(c));                       /* a holder goes on holding */
#endif
        if :: st[c] == HOLD -> next_owner(c) :: else fi
      fi;
      head = 0; next = 0; i = 0; rx = false; r = NONE; assert(EXCLUSIVE) ENDS(c) }
  :: d_step { left_ok[c] && st[c] != DEAD ->
#if FORGET
      if :: !before[c] -> over[whose[c]] = true; assert(lock != whose[c] || left == 0); assert(!inq[whose[c]]) :: else -> before[c] = false fi;
#else
      over[whose[c]] = true; assert(lock != whose[c] || left == 0); assert(!inq[whose[c]]);
#endif
      head = wsent[c]; i = wnumber[c]; rx = wexact[c]; r = wanswer[c]
      DOES(c, released) WITH(riding[c]) NAMED(r) WITH(i) WITH(rx) WITH(head);
      nothing_leaves(c);
      if :: riding[c] -> riding[c] = false; next = head; take_in(c, r, i, rx, next) :: else fi;
      head = 0; next = 0; i = 0; rx = false; r = NONE; assert(EXCLUSIVE) ENDS(c) }
  :: d_step { msg[c] != NOBODY && st[c] != DEAD RARELY ->
      head = msg[c]; i = msgtoken[c]; rx = msgexact[c]; msg[c] = NOBODY; msgtoken[c] = 0; msgexact[c] = false
      DOES(c, reads) WITH(head-c*K) WITH(i) WITH(rx) WITH(mark[c]) WITH(age[c]);
      if
#if FAULT==NO_W4
      :: st[c] == WAIT && head == OWNER(c) && age[c] < G -> hold(c, i, rx, G-age[c])
#elif FAULT==RECEIPT_MSG
      :: st[c] == WAIT && head == OWNER(c) && i > mark[c] -> hold(c, i, rx, G)
#else
      :: st[c] == WAIT && head == OWNER(c) && i > mark[c] && age[c] < G -> hold(c, i, rx, G-age[c])   /* W4, W5 */
#endif
      :: else -> skip
      fi;
      head = 0; i = 0; rx = false; assert(EXCLUSIVE) ENDS(c) }

  /* What the client does by itself. */
  :: d_step { st[c] == IDLE && !asked[c] DOES(c, begins) -> st[c] = WAIT; ask(c, ACQUIRE, 0) ENDS(c) } /* W1 */
#if VACANCY
  /* It may have a permission whenever it asks, from an earlier answer about any key. Only the history
     matters, of which that is, and whether the grace was over there. */
#if FAULT==END_PERMIT || FAULT==END_VACANT
#define PERMITTED (forgot != 2 || (noticed && NO_GRACE))
#elif FORGET && FAULT!=EARLY_PERMIT
#define PERMITTED (forgot != 2 || (noticed && grace == 0))
#else
#define PERMITTED true
#endif
#if FORGET
#define PERMISSION (1+(forgot == 2))
#else
#define PERMISSION 1
#endif
#if LIVE
  :: d_step { PERMITTED && !asked[c] && (st[c] == IDLE || (st[c] == WAIT && !riding[c] && !heard[c])) ->
      heard[c] = (st[c] == WAIT); ask(c, ACQUIRE, PERMISSION); st[c] = WAIT }
#else
  :: d_step { PERMITTED && !asked[c] && (st[c] == IDLE || (st[c] == WAIT && !riding[c])) -> ask(c, ACQUIRE, PERMISSION); st[c] = WAIT }
#endif
#endif
#if LIVE
#if FAULT!=NO_HEARTBEAT
  :: d_step { st[c] == WAIT && !asked[c] && !riding[c] && !heard[c] -> heard[c] = true; ask(c, ACQUIRE, 0) } /* W9 */
#else
  :: d_step { st[c] == WAIT && !heard[c] && !asked[c] -> heard[c] = true }
#endif
#else
  :: d_step { st[c] == WAIT && !asked[c] && !riding[c] DOES(c, asks) -> ask(c, ACQUIRE, 0) ENDS(c) }
  :: d_step { st[c] == WAIT RARELY DOES(c, leaves) -> leave(c, false) ENDS(c) }
#endif
#if RENEWAL
  :: d_step { st[c] == HOLD && trust[c] > 0 && !asked[c] && trust[c] < TTL DOES(c, renews) -> ask(c, RENEW, used[c]) ENDS(c) }
#endif
  :: d_step { st[c] == HOLD && trust[c] > 0 RARELY DOES(c, unlocks) -> leave(c, false) ENDS(c) }
  :: d_step { st[c] == HOLD && trust[c] > 0 && gen[c]+1 < (c==0 -> K0 : K) RARELY DOES(c, unlocks) -> leave(c, true) ENDS(c) }
#if FAULT!=NO_DEADLINE
  :: d_step { st[c] == HOLD && trust[c] == 0 DOES(c, unlocks) -> leave(c, false) ENDS(c) }
  :: d_step { st[c] == HOLD && trust[c] == 0 DOES(c, expires) -> give_up(c); next_owner(c) ENDS(c) }
#else
  :: d_step { st[c] == HOLD && trust[c] == 0 -> trust[c] = 1; assert(EXCLUSIVE) }
#endif
#if LOCAL
  :: d_step { st[c] == HOLD && trust[c] > 0 && passed[c] < LOCAL && HAS_TOKEN(c) DOES(c, passes) -> /* cohort handoff */
      passed[c]++; if :: room[c] > 0 -> room[c]-- :: else fi;
      i = used[c]+1; begin_lease(c, i); i = 0 ENDS(c) }
#endif
#if CRASH
#if LIVE
  :: d_step { crashes < CRASH && st[c] != DEAD && st[c] != DONE -> crashes++; no_lease(c); st[c] = DEAD; nothing_asked(c); nothing_leaves(c); msg[c] = NOBODY }
#else
  :: d_step { st[c] != DEAD && st[c] != DONE DOES(c, dies) -> no_lease(c); st[c] = DEAD ENDS(c) }
#endif
#endif
  od
}

init { atomic {
#if BEGUN
  /* Client 0 holds the key, client 1 waits for it; the other server hears no more. */
  lock = 0; left = TTL; count(); unload(); token = last; st[0] = WAIT; hold(0, last, false, TTL);
  st[1] = WAIT; tickets = 1; ticket[K] = 1; inq[K] = true; alive[K] = DL; mark[1] = last;
  forgot = 1; b_lock = 0; b_left = TTL; b_token = last; b_last = last; b_inq[K] = true; b_alive[K] = DL;
#endif
  run environment(); run client(0); run client(1);
#if N>2
  run client(2);
#endif
} }
