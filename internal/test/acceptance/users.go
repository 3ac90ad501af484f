// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/internal/test/kit/redistest"
	"github.com/asynclock/asynclock-go/internal/test/servers"
	"github.com/asynclock/asynclock-go/store/redisstore"
)

// rights reads from the documentation of package redisstore what an ACL user
// needs: always, and in a Cluster too.
func rights(t *testing.T) (always, inCluster []string) {
	t.Helper()
	_, text, _ := strings.Cut(kit.ReadFile(t, "store/redisstore/doc.go"), "\n// # Rights\n")
	text, _, found := strings.Cut(text, "Redis 6.2 does not know")
	if !found {
		t.Fatal("store/redisstore/doc.go has no section Rights that ends with Redis 6.2")
	}
	right := regexp.MustCompile(`[~&+][a-z|:{*]+`)
	// The indented block is for everyone, the text after it for Clusters.
	for line := range strings.Lines(text) {
		found := right.FindAllString(line, -1)
		inCluster = append(inCluster, found...)
		if strings.HasPrefix(line, "//\t") {
			always = append(always, found...)
		}
	}
	if len(always) == 0 || len(inCluster) == len(always) {
		t.Fatalf("rights in store/redisstore/doc.go: got %q and %q, want some, and more in a Cluster", always, inCluster)
	}
	return always, inCluster
}

// toList are the rights to list keys, which not every user needs.
var toList = []string{"+scan", "+role"}

// onServersForLockers starts servers that speak nothing but TLS, and opens places on them,
// each with a user of its own who has the least rights. The story itself disturbs and
// inspects a server as another user.
func onServersForLockers(start func(*testing.T, *servers.Encryption) *deployment) func(*testing.T) func(*testing.T) *Env {
	return func(t *testing.T) func(*testing.T) *Env {
		t.Helper()
		d := start(t, redistest.NewEncryption(t))
		d.rights = append(d.rights, toList...)
		return func(t *testing.T) *Env {
			t.Helper()
			return d.openForUser(t, "story-"+uuid.NewString())
		}
	}
}

// openForUser makes a place whose clients log in as a user with the deployment's
// rights, for the prefix alone, and checks in the end that they were refused nothing
// but what is expected, as ACL LOG names it.
func (d *deployment) openForUser(t *testing.T, prefix string, options ...redisstore.Option) *Env {
	t.Helper()
	const password = "secret"
	name := "locker-of-" + prefix
	for _, s := range d.Nodes {
		words := append([]string{"ACL", "SETUSER", name, "on", ">" + password, "resetkeys", "resetchannels", "-@all"}, known(t, s, d.rights)...)
		for i, word := range words {
			words[i] = strings.ReplaceAll(word, "asynclock:", prefix+":")
		}
		ask(t, s, words...)
	}
	at := d.address
	at.url = strings.Replace(at.url, "://", "://"+name+":"+password+"@", 1)
	t.Cleanup(func() {
		for _, s := range d.Nodes {
			d.wantRefused(t, s, name)
		}
	})
	return openRedis(t, at, prefix, options...)
}

// wantRefused checks that a server has refused a user nothing but what is expected.
func (d *deployment) wantRefused(t *testing.T, s *servers.Redis, user string) {
	t.Helper()
	m, err := s.Ask(context.Background(), "ACL", "LOG", "1000")
	if err != nil {
		t.Fatal(err)
	}
	log, err := m.ToArray()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range log {
		entry, err := m.AsStrMap()
		command, _, _ := strings.Cut(entry["object"], "|")
		if err != nil || entry["username"] == user && !slices.Contains(d.refused, command) {
			t.Errorf("refused by the server: got %v, %v, want nothing but %q", entry, err, d.refused)
		}
	}
}

// known leaves out rights to commands that the server does not have.
func known(t *testing.T, r *servers.Redis, rights []string) []string {
	t.Helper()
	return slices.DeleteFunc(slices.Clone(rights), func(right string) bool {
		command, _, _ := strings.Cut(strings.TrimPrefix(right, "+"), "|")
		return strings.HasPrefix(right, "+") && ask(t, r, "COMMAND", "INFO", command) == "[<nil>]"
	})
}
