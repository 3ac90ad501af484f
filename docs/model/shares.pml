/* SPDX-License-Identifier: Apache-2.0

   Shares of one key: read-write locks and permits, as they are to be built. README.md
   beside this file says what is modelled and what is not; run.sh, with which sizes it is
   checked and which faults have to be found. The words are those of lock.pml.

   Each stake is one owner of a client in the store: it waits, then it holds, then it is done.
   Time is discrete and passes between any two steps, except with LIVE. Sizes:
     N stakes; WANT(o), WEIGHT(o), LIMIT(o), EXTRA(o): what each of them asks for
     TTL, G (grant TTL), DL (how long a silent waiter counts as alive), BATCH (how many one step
     grants), MAXTOK (runs end when the counter is there).
   Switches, 0 or 1 unless said otherwise:
     LOSS    how many requests, answers or messages are lost, or waiters out of reach
     STRAY   what was given up may arrive all the same, one at a time
     CRASH   how many stakes may die
     LEAVES  how many waiters may withdraw
     RENEWAL leases are renewed
     DOWN    an exclusive holding may become Shared: a downgrade
     JOIN    leases of a client may join its tenure, or take over its permits, without the store
     MATE    stake 2 is a writer of stake 0's client
     SETS    how often the number of permits is set in the store, to 1, 2 or 3, or forgotten
     FORGET  the server is replaced once by one of an earlier moment, its clock SKEW ticks behind
             at most. Shares that it does not know end; what is exclusive is written anew
     BEGUN   the run begins with a reader and the other server cut off
     LIVE    time waits for whoever has something to do. A lease is held for HOLDS ticks at
             most. Everyone is served within BOUND, and nobody waits whom the store could grant.
             No more permits are out than are set, EXCESS ticks after they were set
     FAULT   breaks one rule; a name from the list below
     TRACE   a simulation writes down what clients do, for trace.sh */
#ifndef N
#define N 3
#endif
#ifndef TTL
#define TTL 2
#endif
#ifndef G
#define G 1
#endif
#ifndef DL
#define DL 1
#endif
#ifndef BATCH
#define BATCH 64
#endif
#ifndef MAXTOK
#define MAXTOK 5
#endif
#ifndef LOSS
#define LOSS 0
#endif
#ifndef STRAY
#define STRAY 0
#endif
#ifndef CRASH
#define CRASH 0
#endif
#ifndef LEAVES
#define LEAVES 0
#endif
#ifndef RENEWAL
#define RENEWAL 0
#endif
#ifndef DOWN
#define DOWN 0
#endif
#ifndef JOIN
#define JOIN 0
#endif
#ifndef MATE
#define MATE 0
#endif
#ifndef SETS
#define SETS 0
#endif
#ifndef FORGET
#define FORGET 0
#endif
#ifndef SKEW
#define SKEW 0
#endif
#ifndef BEGUN
#define BEGUN 0
#endif
#ifndef LIVE
#define LIVE 0
#endif
#ifndef HOLDS
#define HOLDS 1
#endif
#ifndef BOUND
#define BOUND 255
#endif
#ifndef EXCESS
#define EXCESS 255
#endif

#define X 1                   /* Exclusive */
#define S 2                   /* Shared */
#define P 3                   /* Permits */

/* The systems. */
#if defined(PERMITS)          /* permits of weight 1, 1 and 2; GREEDY: the first client can use another */
#define WANT(o) P
#define WEIGHT(o) ((o) == 2 -> 2 : 1)
#if defined(GREEDY)
#define EXTRA(o) ((o) == 0 -> 1 : 0)
#endif
#elif defined(BLOCK)          /* a client that can use three permits, and another */
#define WANT(o) P
#define WEIGHT(o) 1
#define EXTRA(o) ((o) == 0 -> 2 : 0)
#elif defined(TAKEN)          /* a writer, and permits of weight 1 and 2 */
#define WANT(o) ((o) == 0 -> X : P)
#define WEIGHT(o) ((o) == 2 -> 2 : 1)
#elif defined(MIXED)          /* a reader, a permit and a writer */
#define WANT(o) ((o) == 0 -> S : ((o) == 1 -> P : X))
#define WEIGHT(o) 1
#else                         /* two readers and a writer */
#define WANT(o) ((o) == 2 -> X : S)
#define WEIGHT(o) 1
#endif
#if defined(DIFFER)           /* stake 0 believes in fewer permits than the others */
#define LIMIT(o) ((o) == 0 -> 2 : 3)
#elif defined(BLOCK)
#define LIMIT(o) 3
#else
#define LIMIT(o) 2
#endif

/* The rules, each of which FAULT may break. */
#define SOUND 0
#define NO_SERVE 1       /* a withdrawal does not serve */
#define OVERTAKE 2       /* serve does not stop at a head that does not fit */
#define NO_WAKE 3        /* serve stops after BATCH grants without a wake-up */
#define CLOSED_ADMITS 4  /* a closed tenure admits */
#define REMOTE_ONLY 5    /* a tenure is closed by remote writers only, not by local ones */
#define JOIN_TRUST 6     /* a joiner's trust counts from the join */
#define FENCE_EACH 7     /* the fence is drawn for each member */
#define FENCE_OLD 8      /* the fence is not drawn anew after a writer */
#define MARK_FENCE 9     /* W4 compares Fence instead of First */
#define REST_RAISES 10   /* a Rest may raise what the owner has */
#define REST_ONCE 11     /* a Rest without an answer is not sent again */
#define EXTRA_ANY 12     /* Extra is granted although others wait */
#define STICKY 13        /* an expired member is not dropped while others last */
#define FIT_ALL 14       /* an exclusive request fits beside readers */
#define FIT_MIXED 15     /* Permits fit beside readers */
#define LIMIT_ASKER 16   /* the limit of who asks is compared, not the least one */
#define LEAST_STAYS 17   /* the least limit stays when its holder leaves */
#define DOWN_FENCE 18    /* a downgrade keeps the writer's token */
#define NO_SERVE_ACQUIRE 19 /* an acquire of a key that has a group does not serve */
#define NO_SERVE_REST 20 /* a Rest does not serve */
#define RENEW_DEAF 21    /* a renewal's answer does not say that somebody waits, nor is that told again */
#define NO_W4 22         /* grant messages are believed however old they are */
#define RENEW_RAISES 23  /* a renewal raises what the owner has */
#define OLD_GROUP 24     /* readers from before the loss are joined, and their token is taken */
#define GRANT_IN_GRACE 25 /* shares are granted in the grace, beside those that are known */
#define SHORT_GRACE 26   /* the grace is shorter than the longest TTL */
#define KEEP_OLDER 27    /* an exclusive holding is not written anew over older readers */
#define NEW_FENCE 28     /* readers from before the loss are joined, with a new token */
#define ORDER_INSIDE 29  /* no rule, but too much promised: H4 for what passes inside a client, too */
#define SET_IGNORED 30   /* the number that is set does not count */
#define SET_LEAST 31     /* the least of the number that is set and of the clients' counts */
#define SET_NO_SERVE 32  /* a number that is set does not serve */
#define SET_ALL_FREE 33  /* a number that is set counts from the next grant, as if nobody had permits */
#define TOO_MUCH_STAYS 34 /* a head that wants more than there is stays in the queue */
#define TOO_MUCH_WAITS 35 /* who asks for more than there is is not told */
#define STALE_PASSES 36  /* a block that was granted under a larger number passes permits on */
#ifndef FAULT
#define FAULT SOUND
#endif

#if FAULT==SHORT_GRACE
#define GRACE (TTL-1)
#else
#define GRACE TTL             /* ticks */
#endif

#define NOBODY 255
/* A trace has a line for each step of a client, as that of lock.pml, where these are explained. */
#ifdef TRACE
mtype = { begins, asks, hears, reads, learns, loses, quits, renews, unlocks, downgrades, rests, repeats, joins, dies };
#define DOES(c, what) ; printf("%d %e", c, what)
#define WITH(x) ; printf(" %d", x)
#define NAMED(x) ; printf(" %e", x)
#define SENDS(c, what, x, y) ; printf(" > %e 0 %d %d %d", what, num[c], x, y)
#define ENDS(c) ; printf(" : %e 0 %d %d %d %d %d %d %d\n", st[c], num[c], trust[c], has[c], have[c], tok[c], CLOSED(c), STALE(c))
#define TICKS printf("tick\n");
bool rare;
#define RARELY && rare
#else
#define DOES(c, what)
#define WITH(x)
#define NAMED(x)
#define SENDS(c, what, x, y)
#define ENDS(c)
#define TICKS
#define RARELY
#endif
#if JOIN
#define CLOSED(c) closed[c]
#else
#define CLOSED(c) 0
#endif
#if JOIN && SETS
#define STALE(c) stale[c]
#define KNOWN(c) limit[c]
#else
#define STALE(c) 0
#define KNOWN(c) 0
#endif
mtype = { IDLE, WAIT, HOLD, DONE, DEAD };           /* stakes */
mtype = { NONE, ACQUIRE, RENEW, REST, RELEASE };    /* requests */
mtype = { GRANTED, WAITING, GONE, OK, LOST, TOOMUCH }; /* answers */

/* The server: who has how much for how long, counter, queue, withdrawn owners. */
byte mode[N], weight[N], left[N], number[N];        /* number is First, each grant's own */
byte fence, last;
bool inq[N], gone[N]; byte ticket[N], alive[N], tickets;
#if FAULT==LEAST_STAYS
byte least = 255;
#endif
#if SETS
byte stored, sets;            /* the number that is set; 0: none */
#if !LIVE
byte allowed[MAXTOK+N+1];     /* the number in force at each grant */
#endif
#endif
#if JOIN
bool told[N];                 /* that member was told of a waiter since its last renewal */
#endif
#if FORGET
byte forgot, b_mode[N], b_weight[N], b_left[N], b_number[N], b_fence, b_last; bool b_inq[N], b_gone[N]; byte b_alive[N];
bool noticed, before[N]; byte grace, past, clock;
#if SKEW
byte lagged;
#endif
#define NO_GRACE (grace == 0)
#else
#define NO_GRACE true
#endif

/* Stakes. */
mtype st[N] = IDLE;
byte age[N], mark[N];         /* time since base, W2; greatest number known to be over, W4 */
bool unsure[N];               /* some request of this owner had no answer */
byte trust[N], has[N], have[N], tok[N], num[N]; /* a tenure's trust, mode, permits, token, number */
bool owed[N];                 /* a Rest has no answer yet */
#if JOIN
bool closed[N], news[N];      /* the tenure admits nobody; a message that closes it is under way */
#if SETS
byte limit[N]; bool stale[N]; /* in force at the grant, or as the store said later; it has become smaller since */
#endif
#endif

/* One request or answer, one withdrawal, one grant message for each stake; one request given up. */
bool asked[N], answered[N]; mtype kind[N] = NONE; byte sent[N], says[N], size[N];
mtype answer[N] = NONE; byte rnum[N], rtok[N], rhas[N], rsize[N]; bool rwait[N];
bool leaving[N], left_ok[N], unsaid[N];
bool msg[N]; byte mnum[N], mtok[N], msize[N]; bool mwait[N]; /* mnum 0: a wake-up */
mtype stray = NONE; byte strayowner, straysays, straysize; bool strayunsure;

/* What is checked. */
bool over[N];                 /* the owner's withdrawal was confirmed */
byte top, topx, asktop[N];    /* greatest token of a lease; of one that was not Shared; top when a stake began */
bool stop;
#if LOSS
byte losses; bool shaken;     /* something was lost in this tick */
#endif
#if LEAVES
byte leaves;
#endif
#if CRASH
byte crashes;
#endif
#if LIVE
bool heard[N]; byte waited[N], held[N];
#if SETS
byte excess;                  /* for how many ticks more permits have been out than there are */
#endif
#endif

byte deaf;                    /* bits: who can't be reached */
/* Scratch, of no meaning between steps. */
hidden byte i, j, head, floor, n, used, readers, writers, low, h1, h2, h3, h4, rw, w1;
hidden mtype r = NONE; hidden byte rn, rt, rh, rs;

#define TRUSTS(c) (st[c] == HOLD && trust[c] > 0 && has[c] != 0)

/* H1 to H3: what may be trusted at the same time. Readers that are trusted at the same time have
   one token. */
inline promises() {
  i = 0;
  do :: i < N ->
    if :: TRUSTS(i) ->
      j = 0; used = 0;
      do :: j < N ->
        if :: TRUSTS(j) ->
          assert(i == j || (has[i] != X && has[j] != X));              /* H1 */
          assert(has[i] == has[j]);                                    /* H2 */
          if :: has[i] == S -> assert(tok[i] == tok[j]) :: else fi; /* a common token */
#if SETS
          if :: num[j] <= num[i] -> used = used + have[j] :: else fi
#else
          used = used + have[j]
#endif
        :: else fi; j++
      :: else -> break od;
#if SETS && !LIVE
      assert(has[i] != P || used <= allowed[num[i]])                   /* H3: nobody was granted beyond the number in force */
#elif !SETS
      assert(has[i] != P || used <= LIMIT(i))                          /* H3 */
#endif
    :: else fi; i++
  :: else -> break od; i = 0
}

/* H4: tokens. A writer's is larger than every one before it. A reader's may be equal to a reader's.
   A grant of permits is compared with what was given before it was asked for. */
inline begin_lease(c) {
  if
  :: has[c] == X -> assert(tok[c] > top)
  :: has[c] == S -> assert(tok[c] >= top && tok[c] > topx)
  :: else -> assert(tok[c] > asktop[c])
  fi;
  if :: tok[c] > top -> top = tok[c] :: else fi;
  if :: tok[c] > topx && has[c] != S -> topx = tok[c] :: else fi
}

/* ---- the scripts ---- */

inline drop(o) { mode[o] = 0; weight[o] = 0; left[o] = 0; number[o] = 0;
#if JOIN
  told[o] = false
#else
  skip
#endif
}

/* load drops what has expired. Every script does so first. */
inline load() {
#if FAULT==STICKY
  h1 = 0; i = 0; do :: i < N -> if :: left[i] > 0 -> h1 = 1 :: else fi; i++ :: else -> break od;
  if :: h1 == 0 -> i = 0; do :: i < N -> drop(i); i++ :: else -> break od :: else fi
#else
  i = 0; do :: i < N -> if :: mode[i] != 0 && left[i] == 0 -> drop(i) :: else fi; i++ :: else -> break od
#endif
}

/* survey counts what is held; fits is the table. */
inline survey() {
  writers = 0; readers = 0; used = 0; low = 255; j = 0;
  do :: j < N ->
    if
    :: mode[j] == X -> writers++
    :: mode[j] == S -> readers++
    :: mode[j] == P -> used = used + weight[j]; if :: LIMIT(j) < low -> low = LIMIT(j) :: else fi
    :: else
    fi; j++
  :: else -> break od;
#if FAULT==LEAST_STAYS
  if :: used == 0 -> least = 255 :: used > 0 && least < low -> low = least :: else fi
#endif
}
#define LEAST(o) (low < LIMIT(o) -> low : LIMIT(o))
#if SETS
#define IN_FORCE(o) (stored > 0 -> stored : LEAST(o))
#else
#define IN_FORCE(o) LEAST(o)
#endif
#if FAULT==LIMIT_ASKER
#define L(o) LIMIT(o)
#elif FAULT==SET_IGNORED
#define L(o) LEAST(o)
#elif FAULT==SET_LEAST
#define L(o) (stored > 0 && stored < LEAST(o) -> stored : LEAST(o))
#elif FAULT==SET_ALL_FREE
#define L(o) (stored > 0 -> stored + used : LEAST(o))
#else
#define L(o) IN_FORCE(o)
#endif
#if SETS
#define TOO_MUCH(o) (stored > 0 && WANT(o) == P && WEIGHT(o) > stored)
#else
#define TOO_MUCH(o) false
#endif
#if FAULT==FIT_ALL
#define XFITS (writers == 0 && used == 0)
#else
#define XFITS (writers == 0 && readers == 0 && used == 0)
#endif
#if FAULT==FIT_MIXED
#define PFITS(o) (writers == 0 && used + WEIGHT(o) <= L(o))
#else
#define PFITS(o) (writers == 0 && readers == 0 && used + WEIGHT(o) <= L(o))
#endif
/* After a loss nobody joins readers from before it. Their record may have outlived a writer whom
   this server has forgotten, and a later reader would get a token below that writer's. */
#if FORGET && FAULT!=OLD_GROUP && FAULT!=NEW_FENCE
#define SFITS (writers == 0 && used == 0 && (readers == 0 || fence > past))
#else
#define SFITS (writers == 0 && used == 0)
#endif
#define FITS(o) (WANT(o) == X -> XFITS : (WANT(o) == S -> SFITS : PFITS(o)))

inline count() {
  last++;
#if FORGET
  if :: clock >= last -> last = clock+1 :: else fi;
  clock = last;
#endif
  if :: last >= MAXTOK -> stop = true :: else fi
}

/* grant gives o its share, with a number of its own. Readers have the fence as their token, which
   the first of a group draws. */
inline grant(o, ttl) {
  h1 = 0; h2 = 0; j = 0;
  do :: j < N ->
    if :: j != o && inq[j] && alive[j] > 0 -> h1 = 1;
      assert(ticket[j] > ticket[o])                                    /* nobody is passed in the queue */
    :: else fi; j++
  :: else -> break od;
  count();
#if FAULT==FENCE_EACH
  if :: WANT(o) == S -> fence = last :: else fi;
#elif FAULT==FENCE_OLD
  if :: WANT(o) == S && fence == 0 -> fence = last :: else fi;
#elif FAULT==NEW_FENCE
  if :: WANT(o) == S && (readers == 0 || fence <= past) -> fence = last :: else fi;
#else
  if :: WANT(o) == S && readers == 0 -> fence = last :: else fi;
#endif
  mode[o] = WANT(o); weight[o] = WEIGHT(o); number[o] = last; left[o] = ttl;
#ifdef EXTRA
  h2 = L(o) - used - WEIGHT(o);
  if :: h2 > EXTRA(o) -> h2 = EXTRA(o) :: else fi;
#if FAULT!=EXTRA_ANY
  if :: h1 -> h2 = 0 :: else fi;
#endif
  weight[o] = weight[o] + h2;
  assert(h1 == 0 || weight[o] == WEIGHT(o));                           /* more than it needs only if nobody waits */
#endif
#if FAULT==LEAST_STAYS
  if :: WANT(o) == P && LIMIT(o) < least -> least = LIMIT(o) :: else fi;
#endif
#if SETS
  assert(WANT(o) != P || used + weight[o] <= IN_FORCE(o));             /* never more than there is */
#if !LIVE
  allowed[last] = IN_FORCE(o);
#endif
#if JOIN
  limit[o] = IN_FORCE(o); stale[o] = false;
#endif
#endif
  h1 = 0; h2 = 0
}
#define TOKEN(o) (mode[o] == S -> fence : number[o])

/* others: does anybody queue? */
inline others() { rw = false; j = 0; do :: j < N -> if :: inq[j] -> rw = true :: else fi; j++ :: else -> break od }

/* serve grants the heads that fit, to self by the answer. */
inline serve(self) {
  n = 0; floor = 0;
  do
  :: true ->
    head = NOBODY; i = 0;
    do :: i < N -> if :: inq[i] && ticket[i] > floor && (head == NOBODY || ticket[i] < ticket[head]) -> head = i :: else fi; i++
       :: else -> break od;
    if
    :: head == NOBODY -> break
    :: head != NOBODY && alive[head] == 0 -> inq[head] = false
    :: else ->
      survey();
      if
#if SETS && FAULT!=TOO_MUCH_STAYS
      :: TOO_MUCH(head) && writers == 0 -> inq[head] = false;           /* its turn: it is told to ask */
        if :: head != self && !msg[head] && st[head] == WAIT -> msg[head] = true :: else fi
#endif
      :: !(FITS(head)) && !(TOO_MUCH(head) && writers == 0 && FAULT != TOO_MUCH_STAYS) ->
#if FAULT==OVERTAKE
        floor = ticket[head]
#else
        break
#endif
      :: FITS(head) && n == BATCH ->
#if FAULT!=NO_WAKE
        if :: !msg[head] && st[head] == WAIT -> msg[head] = true :: else fi;
#endif
        break
      :: FITS(head) && n < BATCH && head != self && ((deaf >> head) & 1) -> inq[head] = false
      :: else ->
        inq[head] = false; n++;
        if
        :: head == self -> grant(head, TTL)
        :: else -> grant(head, G);
          others();
          /* A stake that does not wait any more ignores it. */
          if :: st[head] == WAIT -> msg[head] = true; mnum[head] = last; mtok[head] = TOKEN(head); msize[head] = weight[head]; mwait[head] = rw :: else fi
        fi
      fi
    fi
  od
}

/* notice is what epoch.lua does. Every grant from before has a number up to past. */
inline notice() {
#if FORGET
  if :: forgot == 2 && !noticed -> noticed = true; grace = GRACE; past = clock :: else fi
#else
  skip
#endif
}
#if FAULT==GRANT_IN_GRACE
#define MAY_GRANT(o) (NO_GRACE || WANT(o) == S)
#else
#define MAY_GRANT(o) NO_GRACE
#endif

inline granted(o) { r = GRANTED; rn = number[o]; rt = TOKEN(o); rh = mode[o]; rs = weight[o] }

inline acquire(o) {
  notice();
  if
  :: mode[o] != 0 && MAY_GRANT(o) -> if :: left[o] < TTL -> left[o] = TTL :: else fi; granted(o)
  :: else ->
    if
    :: gone[o] -> r = GONE
#if SETS && FAULT!=TOO_MUCH_WAITS
    :: !gone[o] && TOO_MUCH(o) -> inq[o] = false; if :: NO_GRACE -> serve(NOBODY) :: else fi; r = TOOMUCH
    :: !gone[o] && !(TOO_MUCH(o)) ->
#else
    :: else ->
#endif
      if :: ticket[o] == 0 -> tickets++; ticket[o] = tickets :: else fi;
      if :: mode[o] == 0 -> inq[o] = true; alive[o] = DL :: else fi;
#if FAULT==NO_SERVE_ACQUIRE
      survey();
      if :: NO_GRACE && writers+readers+used == 0 -> serve(o) :: else fi;
#else
      if :: MAY_GRANT(o) -> serve(o) :: else fi;
#endif
      if
      :: mode[o] != 0 && MAY_GRANT(o) -> granted(o)
      :: else -> r = WAITING; rn = last;
#if FORGET
        if :: past > rn -> rn = past :: else fi;
#endif
#if JOIN
        j = 0; do :: j < N ->                                          /* members are told that somebody queues */
          if :: mode[j] != 0 && !told[j] -> told[j] = true; if :: st[j] == HOLD || st[j] == WAIT -> news[j] = true :: else fi :: else fi; j++
        :: else -> break od
#endif
      fi
    fi
  fi;
  others()
}

/* execute runs a request. says and sz: the mode and the permits (or, exclusive, the token) that it tells. */
inline execute(k, o, sy, sz, unc) {
  load();
  rw = false;
  if
  :: k == ACQUIRE -> acquire(o)
  :: k == RENEW ->
    if
    :: mode[o] != 0 ->
      left[o] = TTL; r = OK;
#if FAULT==RENEW_RAISES
      if :: mode[o] == P -> weight[o] = sz :: else fi;
#else
      if :: mode[o] == P && sz < weight[o] -> weight[o] = sz :: else fi;
#endif
#if JOIN && FAULT!=RENEW_DEAF
      told[o] = false;
#endif
#if FAULT!=RENEW_DEAF
      others();
#endif
#if SETS
      survey(); rn = (mode[o] == P -> IN_FORCE(o) : 0)                  /* the answer has the number in force */
#endif
    :: else ->
      notice(); r = LOST;
#if FORGET
      if
      :: grace > 0 && !gone[o] && sy == X ->
        h1 = 1; j = 0;
        do :: j < N -> if :: mode[j] != 0 && (number[j] >= sz || FAULT == KEEP_OLDER) -> h1 = 0 :: else fi; j++ :: else -> break od;
        if :: h1 == 1 ->
          j = 0; do :: j < N -> drop(j); j++ :: else -> break od;
          mode[o] = X; weight[o] = 1; left[o] = TTL; number[o] = sz; inq[o] = false; if :: sz > last -> last = sz :: else fi; r = OK
        :: else fi
      :: else
      fi;
      h1 = 0
#endif
    fi
  :: k == REST ->
    notice();
    if
    :: mode[o] == 0 -> r = LOST
    :: mode[o] == X ->                            /* a downgrade */
      count(); mode[o] = S; number[o] = last;
#if FAULT!=DOWN_FENCE
      fence = last;
#else
      fence = sz;
#endif
      r = OK
    :: mode[o] == S -> r = OK
    :: mode[o] == P ->
#if FAULT==REST_RAISES
      weight[o] = sz;
#else
      if :: sz < weight[o] -> weight[o] = sz :: else fi;
#endif
      r = OK
    fi;
#if FAULT!=NO_SERVE_REST
    if :: NO_GRACE -> serve(NOBODY) :: else fi;
#endif
    if :: r == OK -> granted(o); r = OK :: else fi;
    others()
  :: k == RELEASE ->
    notice();
    n = (mode[o] != 0);
    if :: mode[o] != 0 -> drop(o) :: else inq[o] = false; alive[o] = 0 fi;
    if :: unc || !(NO_GRACE) -> gone[o] = true :: else fi;
#if FAULT==NO_SERVE
    if :: NO_GRACE && n -> serve(NOBODY) :: else fi;
#else
    if :: NO_GRACE -> serve(NOBODY) :: else fi;
#endif
    r = OK
  fi;
  i = 0; do :: i < N -> assert(!(over[i] && (mode[i] != 0 || inq[i]))); i++ :: else -> break od; /* nothing left over */
  i = 0; do :: i < N -> if :: !inq[i] -> alive[i] = 0 :: else fi; i++ :: else -> break od;
  deaf = 0
}

#if SETS
/* set_limit stores the number of permits, and serves. */
inline set_limit(number_of) {
  load(); sets++; stored = number_of;
#if FAULT!=SET_NO_SERVE
  serve(NOBODY);
#endif
  i = 0; do :: i < N -> if :: !inq[i] -> alive[i] = 0 :: else fi; i++ :: else -> break od;
  deaf = 0; promises()
}
#endif

/* ---- the clients ---- */

inline nothing_asked(c) { asked[c] = false; answered[c] = false; kind[c] = NONE; sent[c] = 0; says[c] = 0; size[c] = 0;
  answer[c] = NONE; rnum[c] = 0; rtok[c] = 0; rhas[c] = 0; rsize[c] = 0; rwait[c] = false }
inline no_message(c) { msg[c] = false; mnum[c] = 0; mtok[c] = 0; msize[c] = 0; mwait[c] = false }
inline nothing_leaves(c) { leaving[c] = false; left_ok[c] = false; unsaid[c] = false }
inline nothing_stray() { stray = NONE; strayowner = 0; straysays = 0; straysize = 0; strayunsure = false }

/* ask sends a request. A renewal says what the stake has, a Rest what it keeps. */
inline ask(c, k) { nothing_asked(c); asked[c] = true; kind[c] = k;
  if :: k != ACQUIRE -> says[c] = has[c]; size[c] = (has[c] == P -> have[c] : tok[c]) SENDS(c, k, has[c], have[c])
     :: else -> skip SENDS(c, k, WANT(c), WEIGHT(c)) fi }

inline give_up(c) {
  if :: STRAY && asked[c] && !answered[c] && stray == NONE ->
    stray = kind[c]; strayowner = c; straysays = says[c]; straysize = size[c]
  :: else fi;
  nothing_asked(c)
}

inline no_lease(c) { trust[c] = 0; has[c] = 0; have[c] = 0; tok[c] = 0; num[c] = 0; age[c] = 0; mark[c] = 0; unsure[c] = false; owed[c] = false; asktop[c] = 0;
#if JOIN
  closed[c] = false; news[c] = false;
#endif
#if LIVE
  waited[c] = 0; held[c] = 0; heard[c] = false;
#endif
  no_message(c); st[c] = DONE }

inline leave(c) {
  h1 = (unsure[c] || (asked[c] && kind[c] == ACQUIRE));
  give_up(c); leaving[c] = true; left_ok[c] = false; unsaid[c] = h1 SENDS(c, RELEASE, h1, 0); h1 = 0;
  no_lease(c)
}

inline hold(c, nm, tk, md, sz, wt, howlong) {
  st[c] = HOLD; trust[c] = howlong; has[c] = md; have[c] = sz; tok[c] = tk; num[c] = nm; age[c] = 0; mark[c] = 0;
#if JOIN
  if :: wt -> closed[c] = true :: else fi;
#endif
#if MATE
  if :: c == 0 && st[2] == WAIT && FAULT!=REMOTE_ONLY -> closed[c] = true :: else fi;
#endif
  no_message(c); begin_lease(c); asktop[c] = 0
}

#if LOSS
#define MAY_LOSE (losses < LOSS)
#define LOSE losses++; shaken = LIVE
#else
#define MAY_LOSE false
#define LOSE skip
#endif

/* Whom a handoff finds unreachable is anybody's guess. */
inline guess() {
  if
  :: true
#if LOSS
  :: MAY_LOSE && inq[0] -> deaf = 1; LOSE
  :: MAY_LOSE && inq[1] -> deaf = 2; LOSE
#if N>2
  :: MAY_LOSE && inq[2] -> deaf = 4; LOSE
#endif
#endif
  fi
}

#if LIVE
#if JOIN
#define NEWS(c) news[c]
#else
#define NEWS(c) false
#endif
#define QUIET(c) (st[c] == DEAD || (!asked[c] && !leaving[c] && !msg[c] && !owed[c] && !NEWS(c) && \
  (st[c] == IDLE || st[c] == DONE || (st[c] == WAIT && heard[c]) || (st[c] == HOLD && trust[c] > 1 && held[c] < HOLDS))))
#if N>2
#define TIME_MAY_PASS (QUIET(0) && QUIET(1) && QUIET(2))
#else
#define TIME_MAY_PASS (QUIET(0) && QUIET(1))
#endif
#else
#define TIME_MAY_PASS true
#endif

/* When all is quiet, the head does not fit, and the store counts no permits that nobody has. */
inline quiescent() {
  writers = 0; readers = 0; used = 0; low = 255; head = NOBODY; j = 0;
  do :: j < N ->
    if
    :: left[j] == 0
    :: left[j] > 0 && mode[j] == X -> writers++
    :: left[j] > 0 && mode[j] == S -> readers++
    :: left[j] > 0 && mode[j] == P -> used = used + weight[j]; if :: LIMIT(j) < low -> low = LIMIT(j) :: else fi;
      assert(st[j] != HOLD || weight[j] <= have[j])                    /* no permits that nobody has */
    :: else
    fi;
    if :: inq[j] && alive[j] > 0 && (head == NOBODY || ticket[j] < ticket[head]) -> head = j :: else fi;
    j++
  :: else -> break od;
#if LOSS
  if :: shaken -> head = NOBODY :: else fi; shaken = false;
#endif
  if :: head != NOBODY && NO_GRACE && st[head] == WAIT -> 
    /* nobody waits whom the store could grant, or could tell that it wants too much */
    assert(!(FITS(head)) && !(WANT(head) == P && writers==0 && readers == 0 && (used + WEIGHT(head) <= IN_FORCE(head) || TOO_MUCH(head))))
  :: else fi
#if SETS
  ; if :: stored > 0 && used > stored -> excess++; assert(excess<=EXCESS) :: else -> excess = 0 fi /* in the end no more are out than there are */
#endif
}

proctype environment() provided (!stop) {
#if !LIVE
end:
#endif
  do
#ifdef TRACE
  :: rare = true
  :: rare = false
  :: rare = false
  :: rare = false
#endif
  :: d_step { TIME_MAY_PASS -> TICKS                                /* a tick */
#if LIVE
      quiescent();
#endif
#if FORGET
      if :: grace > 0 -> grace-- :: else fi;
#endif
      i = 0; do :: i < N ->
        if :: left[i] > 0 -> left[i]-- :: else fi;
        if :: alive[i] > 0 && inq[i] -> alive[i]-- :: else fi;
#if FORGET
        if :: forgot == 1 && b_left[i] > 0 -> b_left[i]-- :: else fi;
        if :: forgot == 1 && b_alive[i] > 0 -> b_alive[i]-- :: else fi;
#endif
        if :: trust[i] > 0 -> trust[i]-- :: else fi;
        if :: st[i] == WAIT && age[i] < G -> age[i]++ :: else fi;
        if :: asked[i] && sent[i] < TTL -> sent[i]++ :: else fi;
#if LIVE
        heard[i] = false;
        if :: st[i] == WAIT -> waited[i]++; assert(waited[i] <= BOUND) :: else fi; /* everyone is served */
        if :: st[i] == HOLD -> held[i]++ :: else fi;
#endif
        i++ :: else -> break od; i = 0 }
#if FORGET
  :: d_step { forgot == 0 -> forgot = 1;                            /* the other one hears no more */
      b_fence = fence; b_last = last; i = 0;
      do :: i < N -> b_mode[i] = mode[i]; b_weight[i] = weight[i]; b_left[i] = left[i]; b_number[i] = number[i];
        b_inq[i] = inq[i]; b_gone[i] = gone[i]; b_alive[i] = alive[i]; i++ :: else -> break od; i = 0 }
#if SKEW
  :: d_step { forgot == 1 && lagged < SKEW -> lagged++; i = 0; do :: i < N -> if :: b_left[i] > 0 -> b_left[i]++ :: else fi; i++ :: else -> break od; i = 0 }
#endif
  :: d_step { forgot == 1 -> forgot = 2;                            /* it takes over */
      fence = b_fence; last = b_last; b_fence = 0; b_last = 0; i = 0;
      do :: i < N -> mode[i] = b_mode[i]; weight[i] = b_weight[i]; left[i] = b_left[i]; number[i] = b_number[i];
        inq[i] = b_inq[i]; gone[i] = b_gone[i]; alive[i] = b_alive[i]; over[i] = false; before[i] = left_ok[i];
        b_mode[i] = 0; b_weight[i] = 0; b_left[i] = 0; b_number[i] = 0; b_inq[i] = false; b_gone[i] = false; b_alive[i] = 0;
        i++ :: else -> break od; i = 0 }
#endif
#if SETS
  :: atomic { sets < SETS -> guess();
      if :: h3 = 0 :: h3 = 1 :: h3 = 2 :: h3 = 3 fi;
      d_step { set_limit(h3); h3 = 0 } }
#endif
#if STRAY
  :: atomic { stray != NONE -> guess(); d_step {                    /* a request given up arrives after all */
      execute(stray, strayowner, straysays, straysize, strayunsure);
      nothing_stray(); promises() } }
#endif
  od
}

proctype client(byte c) provided (!stop) {
#if !LIVE
end:
#endif
  do
  /* The server gets to the requests, in any order. */
  :: atomic { asked[c] && !answered[c] -> guess(); d_step {
      execute(kind[c], c, says[c], size[c], false);
      answered[c] = true; says[c] = 0; size[c] = 0; answer[c] = r; rwait[c] = rw;
      if :: r == GRANTED || kind[c] == REST -> rnum[c] = rn; rtok[c] = rt; rhas[c] = rh; rsize[c] = rs
         :: r == WAITING || (SETS && kind[c] == RENEW && r == OK) -> rnum[c] = rn :: else fi } }
  :: atomic { leaving[c] && !left_ok[c] -> guess(); d_step { execute(RELEASE, c, 0, 0, unsaid[c]); left_ok[c] = true } }

  /* Requests, answers and messages are lost, or given up and late. */
#if LOSS
  :: d_step { asked[c] && MAY_LOSE RARELY DOES(c, loses) NAMED(kind[c]) -> LOSE; if :: kind[c] == ACQUIRE -> unsure[c] = true :: else fi; nothing_asked(c) ENDS(c) }
  :: d_step { msg[c] && MAY_LOSE RARELY -> LOSE; no_message(c) }
  :: d_step { leaving[c] && left_ok[c] && MAY_LOSE -> LOSE; left_ok[c] = false }
#if JOIN
  :: d_step { news[c] && MAY_LOSE -> LOSE; news[c] = false }
#endif
#if STRAY
  :: d_step { asked[c] && !answered[c] && stray == NONE && MAY_LOSE RARELY DOES(c, loses) NAMED(kind[c]) -> LOSE; if :: kind[c] == ACQUIRE -> unsure[c] = true :: else fi; give_up(c) ENDS(c) }
  :: d_step { leaving[c] && !left_ok[c] && stray == NONE && MAY_LOSE -> LOSE; stray = RELEASE; strayowner = c; strayunsure = unsaid[c] }
#endif
#endif

  /* Answers and messages arrive. */
  :: d_step { answered[c] && st[c] != DEAD
      DOES(c, hears) NAMED(kind[c]) NAMED(answer[c]) WITH(rnum[c]) WITH(0) WITH(sent[c]) WITH(rtok[c]) WITH(rsize[c]) WITH(rwait[c]) WITH(KNOWN(c)) ->
      h1 = sent[c]; h2 = rnum[c]; h3 = rtok[c]; h4 = rhas[c]; rs = rsize[c]; r = answer[c]; w1 = rwait[c];
      head = (kind[c] == ACQUIRE -> 1 : (kind[c] == RENEW -> 2 : 3));
      nothing_asked(c);
      if
      :: head == 1 && st[c] == WAIT && r == GRANTED ->                                       /* W3 */
        if :: h1 < TTL -> hold(c, h2, h3, h4, rs, w1, TTL-h1) :: else -> leave(c) fi
      :: head == 1 && st[c] == WAIT && r == WAITING ->                                       /* W2 */
        if :: h1 < age[c] -> age[c] = h1 :: else fi;
        if :: h2 > mark[c] -> mark[c] = h2 :: else fi
#if SETS
      :: head == 1 && st[c] == WAIT && r == TOOMUCH ->                                       /* its callers are told */
        if :: unsure[c] -> leave(c) :: else -> no_lease(c) fi
#endif
      :: head == 1 && st[c] == HOLD && r == GRANTED && trust[c] > 0 ->                       /* W6 */
        if
        :: h2 != num[c] -> unsure[c] = true; leave(c)
        :: else -> if :: TTL-h1 > trust[c] -> trust[c] = TTL-h1 :: else fi
        fi
      :: head == 2 && r == OK && st[c] == HOLD ->
        if :: trust[c] > 0 && TTL-h1 > trust[c] -> trust[c] = TTL-h1 :: else fi;
#if JOIN
        if :: w1 -> closed[c] = true :: else fi;
#if SETS
        if :: h2 < limit[c] -> stale[c] = true :: else fi; limit[c] = h2
#endif
#endif
      :: head == 3 && r == OK && st[c] == HOLD ->
        owed[c] = false;
        if :: has[c] == 0 && trust[c] > 0 -> has[c] = h4; tok[c] = h3; num[c] = h2; begin_lease(c) :: else fi
      :: head > 1 && r == LOST && st[c] == HOLD ->
        assert(trust[c] == 0 || (FORGET && has[c] != X)); /* a holder goes on holding */
        no_lease(c)
      :: else
      fi ENDS(c);
      promises() }
  :: d_step { left_ok[c] && st[c] != DEAD ->
#if FORGET
      if :: !before[c] -> over[c] = true :: else -> before[c] = false fi;
#else
      over[c] = true;
#endif
      assert(!over[c] || (!inq[c] && mode[c] == 0));
      nothing_leaves(c) }
  :: d_step { msg[c] && st[c] != DEAD
      DOES(c, reads) WITH(0) WITH(mnum[c]) WITH(0) WITH(mark[c]) WITH(age[c]) WITH(mtok[c]) WITH(msize[c]) WITH(mwait[c]) WITH(0) ->
      h1 = mnum[c]; h2 = mtok[c]; h3 = msize[c]; w1 = mwait[c];
      no_message(c);
      if
      :: st[c] == WAIT && h1 == 0 ->              /* a wake-up: it asks */
#if LIVE
        heard[c] = false
#endif
#if FAULT==MARK_FENCE
      :: st[c] == WAIT && h1 != 0 && age[c] < G && h2 > mark[c] ->
#elif FAULT==NO_W4
      :: st[c] == WAIT && h1 != 0 && age[c] < G ->
#else
      :: st[c] == WAIT && h1 != 0 && age[c] < G && h1 > mark[c] ->                           /* W4, W5 */
#endif
        hold(c, h1, h2, WANT(c), h3, w1, G-age[c])
      :: else ->
        assert(FORGET || !(st[c] == WAIT && h1 != 0 && age[c] < G && left[c] > 0 && number[c] == h1 && mode[c] != 0)) /* no grant is ignored that stands */
      fi ENDS(c);
      promises() }
#if JOIN
  :: d_step { news[c] && st[c] != DEAD DOES(c, learns) -> news[c] = false; if :: st[c] == HOLD -> closed[c] = true :: else fi ENDS(c) }
#endif

  /* What the client does by itself. */
  :: d_step { st[c] == IDLE DOES(c, begins) -> st[c] = WAIT; asktop[c] = (WANT(c) == P -> top : 0); ask(c, ACQUIRE);
#if MATE
      if :: c == 2 && st[0] == HOLD && FAULT!=REMOTE_ONLY -> closed[0] = true :: else fi;
#endif
#if LIVE
      heard[c] = true
#endif
      ENDS(c)
    }
#if LIVE
  :: d_step { st[c] == WAIT && !asked[c] && !heard[c] -> heard[c] = true; ask(c, ACQUIRE) }  /* W9 */
#else
  :: d_step { st[c] == WAIT && !asked[c] DOES(c, asks) -> ask(c, ACQUIRE) ENDS(c) }
#endif
#if LEAVES
  :: d_step { st[c] == WAIT && leaves < LEAVES RARELY DOES(c, quits) -> leaves++; leave(c) ENDS(c) }
#endif
#if RENEWAL
#if LIVE && !defined(EXTRA)
  :: d_step { st[c] == HOLD && trust[c] == 1 && !asked[c] && has[c] != 0 -> ask(c, RENEW) }
#else
  :: d_step { st[c] == HOLD && trust[c] > 0 && trust[c] < TTL && !asked[c] && has[c] != 0 DOES(c, renews) -> ask(c, RENEW) ENDS(c) }
#endif
#endif
  :: d_step { st[c] == HOLD && (trust[c] == 0 || !owed[c]) RARELY DOES(c, unlocks) -> leave(c) ENDS(c) }
#if DOWN
  :: d_step { st[c] == HOLD && has[c] == X && trust[c] > 0 && !asked[c] DOES(c, downgrades) -> ask(c, REST); has[c] = 0; owed[c] = true ENDS(c) }
#endif
#ifdef EXTRA
  :: d_step { st[c] == HOLD && has[c] == P && have[c] > 1 && trust[c] > 0 && !asked[c] RARELY DOES(c, rests) -> have[c]--; ask(c, REST); owed[c] = (FAULT != REST_ONCE) ENDS(c) }
#endif
#if DOWN || defined(EXTRA)
  :: d_step { st[c] == HOLD && owed[c] && !asked[c] && trust[c] > 0 DOES(c, repeats) -> ask(c, REST) ENDS(c) } /* until it is answered */
#endif
#if JOIN
#if FAULT==CLOSED_ADMITS
#define ADMITS(c) true
#elif SETS && FAULT!=STALE_PASSES
#define ADMITS(c) (!closed[c] && !stale[c])
#else
#define ADMITS(c) (!closed[c])
#endif
#if LIVE
  :: d_step { TRUSTS(c) && has[c] != X && ADMITS(c) && held[c] >= HOLDS -> held[c] = 0;
#else
  :: d_step { TRUSTS(c) && has[c] != X && ADMITS(c) RARELY DOES(c, joins) ->
#endif
#if MATE
      assert(!(c == 0 && st[2] == WAIT));         /* nobody joins past a writer that the client knows */
#endif
#if FAULT==JOIN_TRUST
      trust[c] = TTL; promises();
#endif
#if FAULT==ORDER_INSIDE
      if :: has[c] == P -> assert(tok[c] >= top) :: else fi;
#endif
      if :: has[c] == S -> begin_lease(c) :: else fi ENDS(c) }
#endif
#if CRASH
  :: d_step { crashes < CRASH && (st[c] == WAIT || st[c] == HOLD || leaving[c]) RARELY DOES(c, dies) -> crashes++; no_lease(c); st[c] = DEAD;
#if LIVE
      nothing_asked(c); nothing_leaves(c); no_message(c)
#endif
      ENDS(c)
    }
#endif
  od
}

init { atomic {
#if BEGUN
  /* A reader holds the key; the other server hears no more. */
  mode[0] = S; weight[0] = 1; left[0] = TTL; number[0] = 1; fence = 1; last = 1; clock = 1; top = 1;
  st[0] = HOLD; trust[0] = TTL; has[0] = S; have[0] = 1; tok[0] = 1; num[0] = 1;
  forgot = 1; b_mode[0] = S; b_weight[0] = 1; b_left[0] = TTL; b_number[0] = 1; b_fence = 1; b_last = 1;
#endif
  run environment(); run client(0); run client(1);
#if N>2
  run client(2);
#endif
} }
