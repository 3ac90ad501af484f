/* SPDX-License-Identifier: Apache-2.0

   Notes beside one key. README.md beside this file says what is modelled and what is not;
   run.sh, with which sizes it is checked and which faults have to be found. The words are those
   of lock.pml.

   Each client has one lease of the key after the other, and writes notes under it, one by one. A lease
   passes to the next one inside the client, with the next token and the same owner, or the key goes
   back to the store. What is known of the key itself is proved by lock.pml. So here the store grants
   and releases in one step, and a lease may go on in its client after the store has given the key to
   another.
     N       clients
     GRANTS  how many leases there are in all, which is also the largest token
     WRITES  how many notes a lease writes at most
     LATE    how many requests may arrive a second time, at any time later
     FORGET  the server is replaced once by one of an earlier moment that does not know of the
             holding. A renewal in the grace writes it anew
     FAULT   breaks one rule; a name from the list below */
#ifndef N
#define N 2
#endif
#ifndef GRANTS
#define GRANTS 4
#endif
#ifndef WRITES
#define WRITES 2
#endif
#ifndef LATE
#define LATE 2
#endif
#ifndef FORGET
#define FORGET 0
#endif

/* The rules, each of which FAULT may break. */
#define SOUND 0
#define NO_OWNER 1       /* the store does not compare the owner */
#define NO_TOKEN 2       /* it does not compare tokens */
#define NO_SEQ 3         /* it does not compare the numbers of one lease's notes */
#define SAME_SEQ 4       /* a note with the same number is refused: a repetition is taken for a loss */
#define SIDE_BY_SIDE 5   /* calls for one lease don't wait for each other */
#define REFUSED_IS_LOST 6 /* a refusal ends the lease, although no renewal has said so */
#ifndef FAULT
#define FAULT SOUND
#endif

#if FAULT==SIDE_BY_SIDE
#define CALLS 2
#else
#define CALLS 1
#endif
#define SLOT(c, k) (2*(c) + (k))

mtype = { NONE, SENT, WRITTEN, REFUSED };           /* a call: its request, or the answer to it */

/* The server: the owner, which is the first token of its holding, and 0 if there is none; the counter; the note. */
byte owner, last, ntok, nseq;
#if FORGET
byte forgot, b_tok, b_seq, missing; /* missing: the owner that is unknown after the loss, and trusted */
#endif

/* The clients: the owner and the token of the present lease, 0 if there is none; how many notes it wrote. */
byte own[N], tok[N], seq[N];
mtype call[2*N] = NONE; byte cown[2*N], ctok[2*N], cseq[2*N]; bool renewed[2*N];

/* Requests that may arrive at any later time. */
byte lates, lown[LATE], ltok[LATE], lseq[LATE];

/* What is checked: the latest note that a caller was told of. */
byte known_tok, known_seq;
hidden mtype r = NONE;
hidden byte i;

#define BEFORE(t1, s1, t2, s2) ((t1) < (t2) || (t1) == (t2) && (s1) < (s2))

/* write is what the store does with a request. */
inline write(o, t, s) {
  if
#if FAULT!=NO_OWNER
  :: owner != o -> r = REFUSED
#endif
#if FAULT==NO_TOKEN
  :: (owner == o || FAULT == NO_OWNER) && ntok == t && nseq > s -> r = REFUSED
#elif FAULT==NO_SEQ
  :: (owner == o || FAULT == NO_OWNER) && ntok > t -> r = REFUSED
#elif FAULT==SAME_SEQ
  :: (owner == o || FAULT == NO_OWNER) && (ntok > t || ntok == t && nseq >= s) -> r = REFUSED
#else
  :: (owner == o || FAULT == NO_OWNER) && (ntok > t || ntok == t && nseq > s) -> r = REFUSED
#endif
  :: else -> ntok = t; nseq = s; r = WRITTEN;
    assert(owner != 0 && t >= owner)                                   /* only the holder writes */
  fi;
  assert(!BEFORE(ntok, nseq, known_tok, known_seq))                    /* a later note stays */
}

inline no_call(k) { call[k] = NONE; cown[k] = 0; ctok[k] = 0; cseq[k] = 0; renewed[k] = false }
inline no_lease(c) { own[c] = 0; tok[c] = 0; seq[c] = 0; no_call(SLOT(c, 0)); no_call(SLOT(c, 1)) }

/* late keeps a copy of a call's request. */
inline late(k) { lown[lates] = cown[k]; ltok[lates] = ctok[k]; lseq[lates] = cseq[k]; lates++ }

/* told is what the caller of a SetNote learns. */
inline told(k) {
  if :: BEFORE(known_tok, known_seq, ctok[k], cseq[k]) -> known_tok = ctok[k]; known_seq = cseq[k] :: else fi;
  no_call(k)
}

#if FORGET
#define GRACE (forgot == 2)                          /* nobody is granted */
#define MAY_REASSERT(c) (GRACE && missing == own[c]) /* the trusted lease is written anew */
#else
#define GRACE false
#define MAY_REASSERT(c) false
#endif

/* refused: a renewal decides whether the lease is lost. A server that was replaced learns of it again. */
inline refused(c, k) {
#if FAULT==REFUSED_IS_LOST
  assert(owner != own[c] && !MAY_REASSERT(c));  /* a lease is lost only if a renewal says so */
  no_lease(c)
#else
#if FORGET
  if :: MAY_REASSERT(c) -> owner = own[c]; forgot = 3; missing = 0 :: else fi;
#endif
  if
  :: owner != own[c] -> no_lease(c)
  :: else -> assert(!renewed[k]); /* a holder writes */
    renewed[k] = true; call[k] = SENT
  fi
#endif
}

proctype environment() {
end:
  do
  :: d_step { owner != 0 -> owner = 0 }                     /* the TTL has passed; the client does not know */
#if FORGET
  :: d_step { forgot == 2 -> forgot = 3; missing = 0 }                              /* the grace is over */
#endif
  :: d_step { lates > 0 && lown[0] != 0 -> write(lown[0], ltok[0], lseq[0]) }
#if LATE>1
  :: d_step { lates > 1 && lown[1] != 0 -> write(lown[1], ltok[1], lseq[1]) }
#endif
#if FORGET
  :: d_step { forgot == 0 -> forgot = 1; b_tok = ntok; b_seq = nseq }  /* the other one hears no more */
  :: d_step { forgot == 1 -> forgot = 2; missing = owner; owner = 0; ntok = b_tok; nseq = b_seq;
      known_tok = b_tok; known_seq = b_seq; b_tok = 0; b_seq = 0;
      i = 0; do :: i < 2*N -> if :: call[i] == WRITTEN -> call[i] = SENT :: else fi; i++ :: else -> break od; i = 0 }
#endif
  od
}

proctype client(byte c) {
end:
  do
  /* Leases. */
  :: d_step { tok[c] == 0 && owner == 0 && last < GRANTS && !GRACE ->
      last++; owner = last; own[c] = last; tok[c] = last }
  :: d_step { tok[c] != 0 && owner == own[c] && last < GRANTS ->       /* to the next one in this client */
      last++; i = own[c]; no_lease(c); own[c] = i; tok[c] = last }
  :: d_step { tok[c] != 0 ->
      if :: owner == own[c] -> owner = 0 :: else fi; no_lease(c) }

  /* Notes. */
  :: d_step { tok[c] != 0 && seq[c] < WRITES && call[SLOT(c, 0)] == NONE ->
      seq[c]++; call[SLOT(c, 0)] = SENT; cown[SLOT(c, 0)] = own[c]; ctok[SLOT(c, 0)] = tok[c]; cseq[SLOT(c, 0)] = seq[c] }
#if CALLS>1
  :: d_step { tok[c] != 0 && seq[c] < WRITES && call[SLOT(c, 0)] != NONE && call[SLOT(c, 1)] == NONE ->
      seq[c]++; call[SLOT(c, 1)] = SENT; cown[SLOT(c, 1)] = own[c]; ctok[SLOT(c, 1)] = tok[c]; cseq[SLOT(c, 1)] = seq[c] }
#endif
#define STEPS(k) \
  :: d_step { call[k] == SENT && lates < LATE -> late(k) } \
  :: d_step { call[k] == SENT -> write(cown[k], ctok[k], cseq[k]); call[k] = r } \
  :: d_step { call[k] == WRITTEN || call[k] == REFUSED -> call[k] = SENT } \
  :: d_step { call[k] == WRITTEN -> told(k) } \
  :: d_step { call[k] == REFUSED -> refused(c, k) }
  STEPS(SLOT(c, 0))
#if CALLS>1
  STEPS(SLOT(c, 1))
#endif
  od
}

init { atomic {
  run environment(); run client(0); run client(1);
#if N>2
  run client(2);
#endif
} }
