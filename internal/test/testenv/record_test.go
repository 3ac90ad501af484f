// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// events are what go test says: action, package and test of each.
func events(all ...[3]string) string {
	var b strings.Builder
	for _, e := range all {
		fmt.Fprintf(&b, `{"Action":%q,"Package":%q,"Test":%q}`+"\n", e[0], e[1], e[2])
	}
	return b.String()
}

// A test that failed once is named by its innermost part. A test in real time is forgiven if
// it passes when repeated. A test in virtual time is not.
func TestWhatIsForgiven(t *testing.T) {
	t.Parallel()
	const real, virtual = modulePath + "/store/redisstore", modulePath + "/asynclock"
	root := t.TempDir()
	dir := filepath.Join(root, "store", "redisstore")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"real_test.go":   "package redisstore\n\nfunc TestReal(t *testing.T) {}\n",
		"bubble_test.go": "package redisstore\n\nimport \"testing/synctest\"\n\nfunc TestBubble(t *testing.T) {}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name string
		in   string
		want string
		ok   bool
	}{
		{
			name: "all passed", ok: true,
			in: events([3]string{"start", real}, [3]string{"pass", real, "TestReal"}, [3]string{"pass", real}),
		},
		{
			name: "a part failed, and passed when repeated", ok: true,
			in: events([3]string{"start", real}, [3]string{"fail", real, "TestReal/a"}, [3]string{"fail", real, "TestReal"}, [3]string{"fail", real},
				[3]string{"start", real}, [3]string{"pass", real, "TestReal/a"}, [3]string{"pass", real, "TestReal"}, [3]string{"pass", real}),
			want: "flaky: " + real + " TestReal/a failed, and passed when it was repeated by itself: find out why\n",
		},
		{
			name: "one that failed again is the runner's to tell", ok: true,
			in: events([3]string{"start", real}, [3]string{"fail", real, "TestReal"}, [3]string{"fail", real},
				[3]string{"start", real}, [3]string{"fail", real, "TestReal"}, [3]string{"fail", real}),
		},
		{
			name: "in a package of virtual time",
			in: events([3]string{"start", virtual}, [3]string{"fail", virtual, "TestA"}, [3]string{"fail", virtual},
				[3]string{"start", virtual}, [3]string{"pass", virtual, "TestA"}, [3]string{"pass", virtual}),
			want: "FAIL: " + virtual + " TestA failed, and runs in virtual time: that it passed when repeated excuses nothing\n",
		},
		{
			name: "in a bubble",
			in: events([3]string{"start", real}, [3]string{"fail", real, "TestBubble/a"}, [3]string{"fail", real, "TestBubble"}, [3]string{"fail", real},
				[3]string{"start", real}, [3]string{"pass", real, "TestBubble/a"}, [3]string{"pass", real, "TestBubble"}, [3]string{"pass", real}),
			want: "FAIL: " + real + " TestBubble/a failed, and runs in virtual time: that it passed when repeated excuses nothing\n",
		},
		{
			name: "goroutines were left behind, which no repetition shows",
			in: events([3]string{"start", real}, [3]string{"pass", real, "TestReal"}) +
				`{"Action":"output","Package":"` + real + `","Output":"goleak: found one\n"}` + "\n" +
				events([3]string{"fail", real}, [3]string{"start", real}, [3]string{"pass", real}),
			want: "goleak: found one\nFAIL: " + real + " failed without a test that did\n",
		},
		{
			name: "a build that failed",
			in:   "# a package\n" + events([3]string{"start", real}, [3]string{"fail", real}),
			want: "FAIL: " + real + " failed without a test that did\n",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r, err := newRecord(strings.NewReader(c.in))
			if err != nil {
				t.Fatal(err)
			}
			var out strings.Builder
			if ok := r.forgive(&out, root); ok != c.ok || out.String() != c.want {
				t.Errorf("got %v:\n%s\nwant %v:\n%s", ok, out.String(), c.ok, c.want)
			}
		})
	}
}

// A test counts by its last end.
func TestSums(t *testing.T) {
	t.Parallel()
	r, err := newRecord(strings.NewReader(events(
		[3]string{"start", "p"}, [3]string{"pass", "p", "A"}, [3]string{"fail", "p", "B"}, [3]string{"fail", "p", "C"}, [3]string{"skip", "p", "D"}, [3]string{"fail", "p"},
		[3]string{"start", "p"}, [3]string{"pass", "p", "B"}, [3]string{"pass", "p"})))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := r.sums(), "2 passed, 1 failed, 1 skipped"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func FuzzRecord(f *testing.F) {
	f.Add(`{"Action":"fail","Package":"p","Test":"T"}` + "\n" + `{"Action":"pass","Package":"p","Test":"T"}`)
	f.Add(`{"Action":"start","Package":"p"}` + "\n" + `{"Action":"fail","Package":"p"}`)
	f.Fuzz(func(t *testing.T, in string) {
		if _, err := newRecord(strings.NewReader(in)); err != nil {
			t.Errorf("got %v, want what is no event passed over", err)
		}
	})
}
