// SPDX-License-Identifier: Apache-2.0

package zkstore

import (
	"encoding/binary"
	"io"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// packet is what the client library sends for an operation.
func packet(operation uint32) []byte {
	b := make([]byte, opcodeAt, opcodeAt+4)
	b = binary.BigEndian.AppendUint32(b, operation)
	binary.BigEndian.PutUint32(b, uint32(len(b)-4))
	return b
}

// overtaken makes a line that has been accepted, sends an operation on it after a
// while, and returns after what time the server's answer of before was read.
func overtaken(t *testing.T, watches bool, operation uint32) (took time.Duration) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		defer ours.Close()
		st := &Store{watches: make(map[string]*watch)}
		if watches {
			st.watches["/node"] = &watch{given: true}
		}
		l := &sessionConn{Conn: ours, store: st, rewatches: make(chan struct{})}
		head := make([]byte, headLen)
		head[headLen-1] = 1 // the session
		start := time.Now()
		var sending sync.WaitGroup
		sending.Go(func() { _, _ = theirs.Write(append(head, 1)) })
		sending.Go(func() {
			time.Sleep(overtakes / 2)
			sending.Go(func() { _, _ = io.ReadFull(theirs, make([]byte, len(packet(0)))) })
			_, _ = l.Write(packet(operation))
		})
		for _, n := range []int{headLen, 1} {
			if _, err := io.ReadFull(l, make([]byte, n)); err != nil {
				t.Error(err)
			}
		}
		took = time.Since(start)
		sending.Wait()
	})
	return took
}

// When the library sets its watches again, it names the last transaction it has seen. This is no
// later than the last one reported to us, because no answer overtakes a watch.
func TestNoAnswerOvertakesTheWatches(t *testing.T) {
	if got := overtaken(t, true, opSetWatches); got != overtakes/2 {
		t.Errorf("the first answer was read after %v, want it when watches were asked for, after %v", got, overtakes/2)
	}
	if got := overtaken(t, true, 1); got != overtakes {
		t.Errorf("the first answer was read after %v, want it after %v, since no watches are asked for", got, overtakes)
	}
	if got := overtaken(t, false, 1); got != settles {
		t.Errorf("the first answer was read after %v, want it after %v, since nothing is watched", got, settles)
	}
}

// The answer that there is no such session leads to another one without a pause.
func TestALineTellsThatTheSessionIsOver(t *testing.T) {
	for session, want := range []bool{true, false} {
		ours, theirs := net.Pipe()
		defer ours.Close()
		st := &Store{watches: make(map[string]*watch)}
		l := &sessionConn{Conn: ours, store: st, rewatches: make(chan struct{})}
		head := make([]byte, headLen)
		head[headLen-1] = byte(session)
		go func() { _, _ = theirs.Write(head) }()
		if _, err := io.ReadFull(l, make([]byte, headLen)); err != nil {
			t.Error(err)
		}
		if st.hosts.disowned != want {
			t.Errorf("session %d: got %v, want %v", session, st.hosts.disowned, want)
		}
	}
}
