// SPDX-License-Identifier: Apache-2.0

package zkserver

import (
	"errors"
	"net"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/asynclock/asynclock-go/internal/test/kit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func ports(t *testing.T, n int) (all []int) {
	t.Helper()
	if err := Find(); err != nil {
		kit.Skip(t, "ZooKeeper is missing: "+err.Error())
	}
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		all = append(all, l.Addr().(*net.TCPAddr).Port)
	}
	return all
}

func TestAServerComesAndGoes(t *testing.T) {
	s, err := Start(t.Context(), t.TempDir(), ports(t, 1)[0])
	if err != nil {
		t.Fatal(err)
	}
	defer s.Kill()
	if s.Ended() {
		t.Error("it has ended, want it running")
	}
	s.Kill()
	if !s.Ended() {
		t.Error("it runs, want it ended")
	}
	if err := s.await(t.Context(), ""); !errors.Is(err, errEnded) {
		t.Errorf("await of one that has ended: got %v, want errEnded", err)
	}
	if err := s.Restart(); err != nil {
		t.Fatal(err)
	}
	if err := s.await(t.Context(), "standalone"); err != nil {
		t.Errorf("after the restart: got %v, want it to serve", err)
	}
}

func TestAnEnsembleElects(t *testing.T) {
	e, err := StartEnsemble(t.Context(), t.TempDir(), ports(t, 3*PortsPerServer))
	if err != nil {
		t.Fatal(err)
	}
	defer e.Kill()
	// One that has served may be found not serving once more: it is asked with a time
	// limit, and on a busy machine the others may have lost sight of it meanwhile.
	for end := time.Now().Add(readyIn); ; time.Sleep(20 * time.Millisecond) {
		leader, followers, err := e.Roles(t.Context())
		if err == nil && leader != nil && len(followers) == 2 && len(e.Addrs()) == 3 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("got leader %v, %d followers of %d servers, %v, want one and two of three", leader, len(followers), len(e.Addrs()), err)
		}
	}
}
