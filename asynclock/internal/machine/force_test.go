// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"testing"
	"time"

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
		), "idle"},
		{"nobody has taken it", held(
			step{time.Second, message, "renew o1 token=10; alarm 13.345s"},
			step{time.Second, renewed(1, store.RenewReply{}), "alarm 6s"},
			step{6 * time.Second, alarm, "renew o1 token=10; alarm 14.345s"},
			step{6 * time.Second, renewed(2, gone), "lease of a ends: lease lost: another owner has the key; alarm off; dropped; WARN lease lost"},
		), "idle"},
		{"during a renewal", held(
			step{5 * time.Second, alarm, "renew o1 token=10; alarm 13.345s"},
			step{5*time.Second + 10*ms, message, ""},
			step{5*time.Second + 20*ms, renewed(1, store.RenewReply{}), "alarm 5.02s"},
			step{5*time.Second + 20*ms, alarm, "renew o1 token=10; alarm 18.345s"},
			step{5*time.Second + 30*ms, renewed(2, gone), taken},
		), "idle"},
		{"it is asked until it answers", held(
			step{time.Second, message, "renew o1 token=10; alarm 13.345s"},
			step{2 * time.Second, renewed(1, errSilent), "alarm ~50ms; DEBUG renewal failed"},
			step{2*time.Second + 60*ms, alarm, "renew o1 token=10; alarm 13.345s"},
			step{2*time.Second + 60*ms, renewed(2, gone), taken},
		), "idle"},
		{"it never answers", held(
			step{time.Second, message, "renew o1 token=10; alarm 13.345s"},
			step{trusted, alarm, "lease of a ends: lease lost: renewals failed until the trust deadline: store unreachable: outcome unknown; alarm off; dropped; WARN lease lost"},
		), "idle"},
		{"without renewal", heldWith([]with{noRenewal},
			step{time.Second, message, "renew o1 token=10 ttl=13.8764044s; alarm 13.345s"},
			step{time.Second, renewed(1, errSilent), "alarm ~50ms; DEBUG renewal failed"},
			step{time.Second + 60*ms, alarm, "renew o1 token=10 ttl=13.8089887s; alarm 13.345s"},
			step{time.Second + 60*ms, renewed(2, store.RenewReply{}), "alarm 13.345s"},
		), "holding 10 until 13.345s"},
		{"with a maximum hold", heldWith([]with{maxHold(2 * time.Second)},
			step{time.Second, message, "renew o1 token=10 ttl=1.21s; alarm 2s"},
			step{time.Second, renewed(1, gone), taken},
		), "idle"},
		{"another waits here", held(
			step{time.Second, arrive("b"), ""},
			step{time.Second, message, "renew o1 token=10; alarm 13.345s"},
			step{time.Second, unlock("a"), "release o1 token=10 requeue o2 admitted; lease of a ends: unlocked; alarm off"},
		), "waiting as o2"},
		{"it is not retained", heldWith([]with{retention(time.Minute)},
			step{time.Second, message, "renew o1 token=10; alarm 13.345s"},
			step{time.Second, unlock("a"), "release o1 token=10; " + unlocked},
		), "idle"},
		{"readers do not join", heldWith([]with{reader},
			step{time.Second, several, ""},
			step{time.Second, message, "renew o1 token=10 watch; alarm 13.345s"},
			step{time.Second, arrive("b", reader), "acquire o2 watch"},
		), "holding 10 until 13.345s"},
		{"an unlock finds it, too", held(
			step{time.Second, message, "renew o1 token=10; alarm 13.345s"},
			step{time.Second, unlockInVain("a"), "unlock: lease lost: unlocked by force; " + unlocked},
		), "idle"},
		{"an unlock finds another loss", held(
			step{time.Second, message, "renew o1 token=10; alarm 13.345s"},
			step{time.Second, renewed(1, store.RenewReply{}), "alarm 6s"},
			step{time.Second, unlockInVain("a"), "unlock: lease lost: another owner has the key; " + unlocked},
		), "idle"},
		{"it was retained", heldWith([]with{retention(time.Minute)},
			step{time.Second, unlock("a"), "lease of a ends: unlocked; alarm 5s"},
			step{time.Second, message, "renew o1 token=10; alarm 13.345s"},
			step{time.Second, arrive("b", retention(time.Minute)), "release o1 token=10 requeue o2 requests; alarm off"},
		), "waiting as o2"},
	})
}
