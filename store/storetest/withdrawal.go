// SPDX-License-Identifier: Apache-2.0

package storetest

import "github.com/asynclock/asynclock-go/store"

var withdrawalCases = []testCase{
	{"a waiter that withdraws is passed over", queues, waiterWithdraws},
	{"a waiter that withdraws after its grant hands the key on", queues, granteeWithdraws},
	{"a late request of a withdrawn owner is refused", anyStore, lateRequest},
	{"a withdrawal does not refuse anybody else", anyStore, othersAfterWithdrawal},
}

func waiterWithdraws(w *world) {
	a, b, c := w.join(), w.join(), w.join()
	h := a.hold(w.request())
	gone, q := b.wait(w.request()), c.wait(w.request())
	reply := b.release(store.ReleaseRequest{Key: w.key, Owner: gone.req.Owner})
	if reply.WasHeld {
		w.Error("Release by a waiter: got WasHeld true, want false")
	}
	q.heartbeat()
	if q.reply.Rank != 0 {
		w.Errorf("Rank after the one ahead withdrew: got %d, want 0", q.reply.Rank)
	}
	h.release()
	q.granted()
	w.wantHeldBy(a, q.req)
}

func granteeWithdraws(w *world) {
	a, b, c := w.join(), w.join(), w.join()
	h := a.hold(w.request())
	first, second := b.wait(w.request()), c.wait(w.request())
	h.release()
	// b gives up without having read its messages.
	reply := b.release(store.ReleaseRequest{Key: w.key, Owner: first.req.Owner, Uncertain: true})
	if !reply.WasHeld {
		w.Error("Release by a waiter that was granted the key: got WasHeld false, want true")
	}
	second.granted()
	w.wantHeldBy(a, second.req)
}

func lateRequest(w *world) {
	a, b := w.join(), w.join()
	late := w.request()
	reply := a.release(store.ReleaseRequest{Key: w.key, Owner: late.Owner, Uncertain: true})
	if reply.WasHeld {
		w.Error("Release of an unknown owner: got WasHeld true, want false")
	}
	// Whatever the key's state, the late request does nothing.
	w.wantStatus("late Acquire of a free key", a.acquire(late), store.Withdrawn)
	w.wantFree(b, w.key)
	b.hold(w.request())
	w.wantStatus("late Acquire of a held key", a.acquire(late), store.Withdrawn)
	late.Wait = false
	w.wantStatus("late Acquire without Wait", a.acquire(late), store.Withdrawn)
	if got := b.inspect(w.key).Waiters; got != 0 {
		w.Errorf("Waiters: got %d, want 0", got)
	}
}

func othersAfterWithdrawal(w *world) {
	a, b := w.join(), w.join()
	a.release(store.ReleaseRequest{Key: w.key, Owner: newOwner(), Uncertain: true})
	h := a.hold(w.try())
	q := b.wait(w.request())
	h.release()
	q.poll().release()
	b.hold(w.try()).release()
}
