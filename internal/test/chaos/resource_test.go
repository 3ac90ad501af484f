// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2"

	"github.com/asynclock/asynclock-go/internal/test/chaos/history"
	"github.com/asynclock/asynclock-go/internal/test/kit"
)

func TestResourcesCheckTokens(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(*testing.T) resource{"redis": vaultForTest, "file": ledgerForTest, "sql": rowForTest} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, r := t.Context(), open(t)
			if r.name() != name {
				t.Errorf("got the name %s, want %s", r.name(), name)
			}
			read := func(op string, token, want int64, accepted bool) {
				t.Helper()
				got, ok, err := r.read(ctx, "k", op, token)
				if err != nil || ok != accepted || ok && got != want {
					t.Errorf("read by %s: got %d, %t, %v, want %d, %t", op, got, ok, err, want, accepted)
				}
			}
			write := func(op string, token, read int64, accepted bool) {
				t.Helper()
				if ok, err := r.write(ctx, "k", op, token, read, read+1); err != nil || ok != accepted {
					t.Errorf("write by %s: got %t, %v, want %t", op, ok, err, accepted)
				}
			}
			read("a", 9, 0, true)
			write("a", 9, 0, true)
			read("a", 9, 1, true)
			write("a", 9, 1, true) // one holder may write often
			read("b", 10, 2, true)
			write("a", 9, 2, false) // overtaken, though b has not written yet
			read("a", 9, 0, false)
			write("b", 10, 2, true)
			write("c", 100, 3, true) // more digits are more
			write("b", 99, 4, false)

			got, err := r.journal(ctx, "k")
			want := []history.Record{
				{Op: "a", Token: 9, Read: 0, Wrote: 1},
				{Op: "a", Token: 9, Read: 1, Wrote: 2},
				{Op: "b", Token: 10, Read: 2, Wrote: 3},
				{Op: "c", Token: 100, Read: 3, Wrote: 4},
			}
			if err != nil || len(got) != len(want) {
				t.Fatalf("journal: got %v, %v, want %v", got, err, want)
			}
			for i, w := range want {
				w.Kind, w.Key, w.Resource = history.Write, "k", r.name()
				if got[i] != w {
					t.Errorf("journal: got %v, want %v", got[i], w)
				}
			}
			if got, err := r.journal(ctx, "another"); err != nil || len(got) > 0 {
				t.Errorf("journal of a key without writes: got %v, %v, want none", got, err)
			}
		})
	}
}

func vaultForTest(t *testing.T) resource {
	t.Helper()
	v, err := openVault(miniredis.RunT(t).Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(v.client.Close)
	return v
}

func ledgerForTest(t *testing.T) resource {
	t.Helper()
	return ledger{t.TempDir()}
}

// needDatabase skips a test for want of one, where that is allowed.
func needDatabase(t *testing.T) {
	t.Helper()
	if err := findDatabase(); err != nil {
		kit.Skip(t, err.Error())
	}
}

// rowForTest is in a database that ends with the test.
func rowForTest(t *testing.T) resource {
	t.Helper()
	needDatabase(t)
	d, err := startDatabase(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	r, err := openRow(t.Context(), d.url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.close)
	return r
}

func TestDamagedJournalIsAnError(t *testing.T) {
	t.Parallel()
	for _, line := range []string{"", "x", "1 a", "1 a 2", "1 a 2 x"} {
		if got, err := parseWrite("file", "k", line); err == nil {
			t.Errorf("%q: got %v, want an error", line, got)
		}
	}
}

// FuzzJournal: a line of a journal is a write that makes sense, or an error, and
// the end of a journal is found in whatever there is.
func FuzzJournal(f *testing.F) {
	f.Add("7 w1.1/3 0 1")
	f.Add("-7 w1.1/3 0 1")
	f.Add("9223372036854775808 a 1 2")
	f.Add("")
	f.Add("7 " + strings.Repeat("a", 250) + "\t2 aaaaaa 0 1")
	f.Add("7 " + strings.Repeat("a", 250) + " b 2 cc 0 1")
	f.Fuzz(func(t *testing.T, line string) {
		w, err := parseWrite("file", "k", line)
		if err == nil && (w.Kind != history.Write || w.Op == "" || w.Key != "k") {
			t.Errorf("%q: got %+v, want a write or an error", line, w)
		}
		l := ledger{t.TempDir()}
		if err := os.WriteFile(l.path("k"), []byte("write "+line+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		file, err := os.Open(l.path("k"))
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		if token, _, err := lastLine(file); err == nil && w.Token != token && !strings.Contains(line, "\n") {
			t.Errorf("%q: the last line has token %d, the journal's entry %d", line, token, w.Token)
		}
	})
}
