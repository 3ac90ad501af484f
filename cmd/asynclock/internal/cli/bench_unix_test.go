// SPDX-License-Identifier: Apache-2.0

//go:build unix

package cli_test

import (
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/alicebob/miniredis/v2/server"

	"github.com/asynclock/asynclock-go/internal/test/kit"
)

// TestBenchEndsByASecondSignal, at once, if the server does not answer to the unlocks.
func TestBenchEndsByASecondSignal(t *testing.T) {
	t.Parallel()
	redis := startRedis(t)
	var hangs atomic.Bool
	answer := make(chan struct{})
	t.Cleanup(func() { close(answer) })
	redis.Server().SetPreHook(func(c *server.Peer, command string, _ ...string) bool {
		if hangs.Load() {
			<-answer
		}
		return standalone(c, command)
	})
	p := redis.startProcess(t, program(t), "bench", "--for", "1m")
	kit.Eventually(t, "alone", func() bool { return strings.Contains(strings.Join(redis.Keys(), " "), "/alone") })
	hangs.Store(true)
	ended := make(chan struct{})
	go func() { // ends with the process, for which Eventually waits
		defer close(ended)
		_ = p.Wait()
	}()
	kit.Eventually(t, "the end", func() bool {
		_ = p.Process.Signal(syscall.SIGTERM)
		select {
		case <-ended:
			return true
		default:
			return false
		}
	})
	if status, ok := p.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGTERM {
		t.Errorf("got %v, want the end by the second signal", p.ProcessState)
	}
}
