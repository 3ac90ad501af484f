// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/internal/redisconn"
	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/internal/test/kit/redistest"
	"github.com/asynclock/asynclock-go/internal/test/servers"
	"github.com/asynclock/asynclock-go/store"
)

// A URL says all about sentinels with TLS and a user of their own, and servers with another.
func TestSentinelsOverTLSWithAUserOfTheirOwn(t *testing.T) {
	t.Parallel()
	c := servers.Config{Encryption: redistest.NewEncryption(t)}
	sv, nodes := startSentinelSet(t, c)
	user := sv.as(t, "locker", documentedRights+rightsInSentinel, nodes...)
	sentinel := sv.whole.Sentinels[0]
	for _, words := range [][]string{
		{"ACL", "SETUSER", "watcher", "on", ">its/password", "&*", "+hello", "+ping", "+subscribe", "+sentinel|get-master-addr-by-name", "+sentinel|sentinels"},
		{"ACL", "SETUSER", "default", "off"},
	} {
		if err := sentinel.Do(t.Context(), words...); err != nil {
			t.Fatal(err)
		}
	}
	at := "127.0.0.1:" + sentinel.Port()
	const theirs = "&sentinel_username=watcher&sentinel_password=its%2Fpassword"
	for _, tt := range []struct {
		name, url string
		want      error
	}{
		{"all is said", "rediss://locker:pa55word-of-locker@" + at + "?master_set=" + servers.MasterSet + theirs, nil},
		{"nobody is dialed by the first host's name", "rediss://locker:pa55word-of-locker@elsewhere.invalid:1?addr=" + at + "&master_set=" + servers.MasterSet + theirs, nil},
		{"the name in the certificates is another", "rediss://locker:pa55word-of-locker@" + at + "?server_name=elsewhere&master_set=" + servers.MasterSet + theirs, store.ErrUnreachable},
		{"the sentinels' user is missing", "rediss://locker:pa55word-of-locker@" + at + "?master_set=" + servers.MasterSet, store.ErrDenied},
		{"the sentinels' password is wrong", "rediss://locker:pa55word-of-locker@" + at + "?master_set=" + servers.MasterSet + theirs + "x", store.ErrDenied},
		{"the servers' password is wrong", "rediss://locker:x@" + at + "?master_set=" + servers.MasterSet + theirs, store.ErrDenied},
		{"no TLS", "redis://locker:pa55word-of-locker@" + at + "?master_set=" + servers.MasterSet + theirs, store.ErrUnreachable},
	} {
		option, err := redisconn.ParseURL(tt.url)
		if err != nil {
			t.Fatal(err)
		}
		if option.TLSConfig != nil { // which no URL says: our authority, and who we are
			option.TLSConfig.RootCAs, option.TLSConfig.Certificates = user.Option.TLSConfig.RootCAs, user.Option.TLSConfig.Certificates
		}
		st, err := Open(option, WithPrefix(sv.prefix), WithoutFailoverGrace(), WithoutLogger())
		if err == nil {
			join(t, st).Hold("key of "+tt.name, "a")
			st.Close()
		}
		if !errors.Is(err, tt.want) {
			t.Errorf("%s: Open: got %v, want %v", tt.name, err, tt.want)
		}
	}
}

// One after the other, rueidis waits for the primary and the sentinel, for the sake of each client.
func TestCloseWaitsForNoSilentSentinel(t *testing.T) {
	t.Parallel()
	sv, nodes := startSentinelSet(t, servers.Config{Patience: time.Minute})
	st := sv.newStore(t)
	for _, part := range []*servers.Redis{nodes[0].own, sv.whole.Sentinels[0]} {
		if err := part.Pause(); err != nil {
			t.Fatal(err)
		}
	}
	began := time.Now()
	st.Close()
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("Close took %v, want some 1.2 s", took)
	}
	for _, part := range []*servers.Redis{nodes[0].own, sv.whole.Sentinels[0]} {
		if err := part.Resume(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestASentinelFailsOver(t *testing.T) {
	t.Parallel()
	p := sentinelPair(t)
	sv, replica := p.sv, p.replica
	st := sv.newStore(t, WithoutFailoverGrace())
	a, b := join(t, st), join(t, st)
	held := a.Hold("key", "a")
	b.Wait("key", "b")
	kit.Eventually(t, "the replica is in step", func() bool {
		return replica.Number(t, "EXISTS", sv.redisKey("key", 'l'), sv.redisKey("key", 'w')) == 2
	})

	p.promote()
	renewal := store.RenewRequest{Key: "key", Owner: "a", TTL: long}
	kit.Eventually(t, "the new primary renews", func() bool {
		err := a.renew(renewal).Err
		if err != nil && !errors.Is(err, store.ErrUnreachable) && !errors.Is(err, store.ErrOutcomeUnknown) {
			t.Fatalf("Renew during a failover: got %v, want ErrUnreachable or ErrOutcomeUnknown", err)
		}
		return err == nil
	})
	kit.Eventually(t, "the waiter hears from the new primary", func() bool {
		n, err := sv.Try("PUBSUB", "NUMSUB", b.session.classic.Load().channel.name)
		return err == nil && strings.HasSuffix(n, " 1]") && b.Wait("key", "b").Recheck == 0
	})
	a.release(store.ReleaseRequest{Key: "key", Owner: "a", Token: held.Token})
	if e := b.Heard(store.EventGrant, "b"); e.Grant.Token <= held.Token {
		t.Errorf("token: got %d, want more than %d", e.Grant.Token, held.Token)
	}
}
