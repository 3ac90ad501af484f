// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock/internal/machine"
	"github.com/asynclock/asynclock-go/store"
)

// A message that the key was taken by force ends nothing: whoever can send one could end leases. The store is asked.
func TestForce(t *testing.T) {
	t.Parallel()
	const taken = "lease of a ends: lease lost: unlocked by force; alarm off; dropped; WARN lease lost"
	message := event(store.EventForced)
	gone := store.RenewReply{Err: store.ErrStolen}
	checkRows(t, []row{
		{"the store confirms it", held(
			step{time.Second, message, "renew o1 token=10; alarm 13.345s"},
			step{time.Second, renewed(1, gone), taken},
			step{time.Second, unlock("a"), "unlock: lease lost: unlocked by force; withdraw o1 token=10"},
		), "unused"},
		{"nobody has taken it", held(
			step{time.Second, message, "renew o1 token=10; alarm 13.345s"},
			step{time.Second, renewed(1, store.RenewReply{}), "alarm 6s"},
			step{6 * time.Second, alarm, "renew o1 token=10; alarm 14.345s"},
			step{6 * time.Second, renewed(2, gone), "lease of a ends: lease lost: another owner has the key; alarm off; dropped; WARN lease lost"},
		), "unused"},
		{"about another owner", held(
			step{time.Second, func(w *world, st *machine.Step) []string {
				w.key.Event(&store.Event{Kind: store.EventForced, Owner: "o2"}, st)
				return nil
			}, ""},
		), "holding 10 until 13.345s"},
		{"during a renewal", held(
			step{5 * time.Second, alarm, "renew o1 token=10; alarm 13.345s"},
			step{5*time.Second + 10*ms, message, ""},
			step{5*time.Second + 20*ms, renewed(1, store.RenewReply{}), "alarm 5.02s"},
			step{5*time.Second + 20*ms, alarm, "renew o1 token=10; alarm 18.345s"},
			step{5*time.Second + 30*ms, renewed(2, gone), taken},
		), "unused"},
		{"it is asked until it answers", held(
			step{time.Second, message, "renew o1 token=10; alarm 13.345s"},
			step{2 * time.Second, renewed(1, errSilent), "alarm ~50ms; DEBUG renewal failed"},
			step{2*time.Second + 60*ms, alarm, "renew o1 token=10; alarm 13.345s"},
			step{2*time.Second + 60*ms, renewed(2, gone), taken},
		), "unused"},
		{"it never answers", held(
			step{time.Second, message, "renew o1 token=10; alarm 13.345s"},
			step{trusted, alarm, "lease of a ends: lease lost: renewals failed until the trust deadline: store unreachable: outcome unknown; alarm off; dropped; WARN lease lost"},
		), "unused"},
		{"without renewal", heldWith([]with{noRenewal},
			step{time.Second, message, "renew o1 token=10 ttl=14.824s"},
			step{time.Second, renewed(1, errSilent), "alarm ~50ms; DEBUG renewal failed"},
			step{time.Second + 60*ms, alarm, "renew o1 token=10 ttl=14.752s; alarm 13.345s"},
			step{time.Second + 60*ms, renewed(2, store.RenewReply{}), ""},
		), "holding 10 until 13.345s"},
		{"without renewal, at the very end", heldWith([]with{noRenewal},
			step{trusted - 40*ms, message, "renew o1 token=10 ttl=100ms"},
			step{trusted - 30*ms, renewed(1, store.RenewReply{}), ""},
		), "holding 10 until 13.345s"},
		{"without renewal, and it never answers", heldWith([]with{noRenewal},
			step{time.Second, message, "..."},
			step{time.Second, renewed(1, errSilent), "..."},
			step{trusted, alarm, expired},
		), "unused"},
		{"without renewal, before the lease was received", []step{
			{0, arrive("a", future, noRenewal), "..."},
			{0, answer(1, followed(10)), "..."},
			{4 * time.Second, message, "renew o1 token=10 watch; alarm 13.345s"},
			{4 * time.Second, renewed(1, errSilent), "..."},
			{4 * time.Second, look("a"), "a has 10; renew o1 token=10 watch; alarm 13.345s"},
			{4 * time.Second, renewed(2, store.RenewReply{}), "alarm 17.345s"},
		}, "holding 10 until 17.345s"},
		{"an answer to an older renewal does not put the question off", held(
			step{5 * time.Second, renew("a", time.Minute), "renew o1 token=10 ttl=1m0s"},
			step{6 * time.Second, message, "renew o1 token=10; alarm 13.345s"},
			step{6 * time.Second, renewed(2, errSilent), "alarm ~50ms; DEBUG renewal failed"},
			step{6 * time.Second, renewed(1, store.RenewReply{}), ""},
		), "holding 10 until 58.395s"},
		{"with a maximum hold", heldWith([]with{maxHold(2 * time.Second)},
			step{time.Second, message, "renew o1 token=10 ttl=1.21s"},
			step{time.Second, renewed(1, gone), taken},
		), "unused"},
		{"another waits here", held(
			step{time.Second, arrive("b"), ""},
			step{time.Second, message, "renew o1 token=10; alarm 13.345s"},
			step{time.Second, unlock("a"), "release o1 token=10 requeue o2 unlimited; lease of a ends: unlocked; alarm off"},
		), "waiting as o2"},
		{"it is not retained", heldWith([]with{retention(time.Minute)},
			step{time.Second, message, "renew o1 token=10; alarm 13.345s"},
			step{time.Second, unlock("a"), "release o1 token=10; " + unlocked},
		), "unused"},
		{"readers do not join", heldWith([]with{reader},
			step{time.Second, several, ""},
			step{time.Second, message, "renew o1 token=10 watch; alarm 13.345s"},
			step{time.Second, arrive("b", reader), "acquire o2 watch"},
		), "holding 10 until 13.345s"},
		{"an unlock finds it, too", held(
			step{time.Second, message, "renew o1 token=10; alarm 13.345s"},
			step{time.Second, unlockInVain("a"), "unlock: lease lost: unlocked by force; " + unlocked},
		), "unused"},
		{"an unlock finds another loss", held(
			step{time.Second, message, "renew o1 token=10; alarm 13.345s"},
			step{time.Second, renewed(1, store.RenewReply{}), "alarm 6s"},
			step{time.Second, unlockInVain("a"), "unlock: lease lost: another owner has the key; " + unlocked},
		), "unused"},
		{"it was retained", heldWith([]with{retention(time.Minute)},
			step{time.Second, unlock("a"), "lease of a ends: unlocked"},
			step{time.Second, message, "renew o1 token=10; alarm 13.345s"},
			step{time.Second, arrive("b", retention(time.Minute)), "release o1 token=10 requeue o2 requests; alarm off"},
		), "waiting as o2"},
	})
}
