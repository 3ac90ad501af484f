// SPDX-License-Identifier: Apache-2.0

package redisconn

import (
	"crypto/tls"
	"testing"
	"time"

	"github.com/redis/rueidis"
)

func TestOpenLeavesTheCallersChoices(t *testing.T) {
	got := ForLocks(rueidis.ClientOption{})
	if got.PipelineMultiplex != -1 || !got.AlwaysPipelining || !got.DisableCache || got.ConnWriteTimeout != 3*time.Second || got.Dialer.KeepAlive != time.Second || got.ConnLifetime != 0 {
		t.Errorf("defaults: got %+v", got)
	}
	if got.ReadBufferEachConn != 64<<10 || got.WriteBufferEachConn != 64<<10 || got.RingScaleEachConn != 8 {
		t.Errorf("memory of a connection: got %+v, want 64 kB each way and a ring of 256", got)
	}
	chosen := rueidis.ClientOption{ReadBufferEachConn: 1 << 20, WriteBufferEachConn: 1 << 10, RingScaleEachConn: 12}
	if got = ForLocks(chosen); got.ReadBufferEachConn != 1<<20 || got.WriteBufferEachConn != 1<<10 || got.RingScaleEachConn != 12 {
		t.Errorf("memory of a connection: got %+v, want what was chosen", got)
	}
	chosen = rueidis.ClientOption{PipelineMultiplex: 2, DisableAutoPipelining: true, ConnWriteTimeout: time.Minute}
	chosen.Dialer.KeepAlive = time.Hour
	chosen.ConnLifetime, chosen.DisableTCPNoDelay = time.Minute, true // the choices that can't be left
	chosen.Sentinel.MasterSet = "m"
	got = ForLocks(chosen)
	if got.PipelineMultiplex != 2 || got.ConnLifetime != 0 || got.DisableTCPNoDelay || got.AlwaysPipelining || got.ConnWriteTimeout != time.Minute || got.Dialer.KeepAlive != time.Hour || got.Sentinel.TopologyRefreshInterval != 5*time.Second {
		t.Errorf("choices: got %+v", got)
	}
	encrypted := rueidis.ClientOption{TLSConfig: &tls.Config{MinVersion: tls.VersionTLS13}}
	encrypted.Sentinel.MasterSet = "m"
	if got = ForLocks(encrypted); got.Sentinel.TLSConfig != encrypted.TLSConfig {
		t.Error("TLS of sentinels: got another, want that of the servers")
	}
	encrypted.Sentinel.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	if got = ForLocks(encrypted); got.Sentinel.TLSConfig != encrypted.Sentinel.TLSConfig {
		t.Error("TLS of sentinels: got another, want what was chosen")
	}
	for attempts := range 100 {
		if pause := got.RetryDelay(attempts, rueidis.Completed{}, nil); pause <= 0 || pause > 300*time.Millisecond {
			t.Errorf("RetryDelay after %d attempts: got %v, want at most 300ms", attempts, pause)
		}
	}
	chosen.RetryDelay = func(int, rueidis.Completed, error) time.Duration { return time.Hour }
	if pause := ForLocks(chosen).RetryDelay(1, rueidis.Completed{}, nil); pause != time.Hour {
		t.Errorf("RetryDelay: got %v, want what was chosen", pause)
	}
	replicas := ForLocks(rueidis.ClientOption{SendToReplicas: func(rueidis.Completed) bool { return true }})
	if replicas.SendToReplicas != nil {
		t.Error("SendToReplicas: got it kept, want it dropped")
	}
}
