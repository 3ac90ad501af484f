// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
	"testing"
)

// A story is what go test printed: action, test and output of each event.
type story [][3]string

func (s story) report(verbose bool) (text string, ok bool) {
	var in, out strings.Builder
	for _, e := range s {
		fmt.Fprintf(&in, `{"Action":%q,"Package":"p","Test":%q,"Output":%q}`+"\n", e[0], e[1], e[2])
	}
	r := newReport(&out, verbose)
	r.read(strings.NewReader(in.String()))
	ok = r.close()
	return out.String(), ok
}

func TestReport(t *testing.T) {
	t.Parallel()
	passing := story{
		{"run", "TestA", ""},
		{"output", "TestA", "noise\n"},
		{"pass", "TestA", ""},
		{"output", "", "-test.shuffle 1795235202751893568\n"},
		{"output", "", "PASS\n"},
		{"output", "", "ok  \tp\t0.1s\n"},
		{"pass", "", ""},
	}
	for _, c := range []struct {
		name    string
		story   story
		verbose bool
		want    string
		ok      bool
	}{
		{
			name: "pass", story: passing, ok: true,
			want: "ok  \tp\t0.1s\n1 passed, 0 failed, 0 skipped\n",
		},
		{
			name: "verbose pass", story: passing, verbose: true, ok: true,
			want: "noise\nok  \tp\t0.1s\n1 passed, 0 failed, 0 skipped\n",
		},
		{
			name: "only the failing test is shown, and at the end once more what it said",
			story: story{
				{"output", "TestA", "=== RUN   TestA\n"},
				{"output", "TestA/part", "a says\n"},
				{"output", "TestA/part", "    --- FAIL: TestA/part (0.00s)\n"},
				{"output", "TestB", "b says\n"},
				{"pass", "TestB", ""},
				{"fail", "TestA/part", ""},
				{"output", "TestA", "--- FAIL: TestA (0.00s)\n"},
				{"fail", "TestA", ""},
				{"output", "", "FAIL\tp\t0.1s\n"},
				{"fail", "", ""},
			},
			want: "a says\n    --- FAIL: TestA/part (0.00s)\n--- FAIL: TestA (0.00s)\nFAIL\tp\t0.1s\n" +
				"failed: p TestA/part\na says\n1 passed, 2 failed, 0 skipped\n",
		},
		{
			name: "a test that never ended is shown with its package",
			story: story{
				{"output", "TestA", "panic: oh\n"},
				{"fail", "", ""},
			},
			want: "panic: oh\nfailed: p TestA\npanic: oh\n0 passed, 0 failed, 0 skipped\n", ok: true, // go test's exit code tells
		},
		{
			name: "a skip has its reason",
			story: story{
				{"output", "TestA", "=== RUN   TestA\n"},
				{"output", "TestA", "    a_test.go:1: only for\n"},
				{"output", "TestA", "        two lines\n"},
				{"output", "TestA", "--- SKIP: TestA (0.00s)\n"},
				{"skip", "TestA", ""},
			},
			want: "skipped: p TestA: only for two lines\n0 passed, 0 failed, 1 skipped\n", ok: true,
		},
		{
			name: "skips for one reason take one line",
			story: story{
				{"output", "TestA", "    a_test.go:1: no queue\n"},
				{"skip", "TestA", ""},
				{"output", "TestB", "    b_test.go:2: no queue\n"},
				{"skip", "TestB", ""},
			},
			want: "skipped: p TestA and 1 more: no queue\n0 passed, 0 failed, 2 skipped\n", ok: true,
		},
		{
			name: "a skip for want of a server is a failure",
			story: story{
				{"output", "TestA", "    a_test.go:1: ASYNCLOCK_REDIS_URL is not set\n"},
				{"skip", "TestA", ""},
			},
			want: "skipped: p TestA: ASYNCLOCK_REDIS_URL is not set\n" +
				"FAIL: tests were skipped although their servers are here\n0 passed, 0 failed, 1 skipped\n",
		},
		{
			name:  "a build failure is shown",
			story: story{{"build-output", "", "a.go:1: syntax error\n"}},
			want:  "a.go:1: syntax error\n0 passed, 0 failed, 0 skipped\n", ok: true,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, ok := c.story.report(c.verbose)
			if got != c.want || ok != c.ok {
				t.Errorf("got %v:\n%s\nwant %v:\n%s", ok, got, c.ok, c.want)
			}
		})
	}
}

func TestReportShowsWhatIsNoEvent(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	newReport(&out, false).read(strings.NewReader("go: no such package\n{\"Action\":\"start\"}\nlast"))
	if got, want := out.String(), "go: no such package\nlast"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func FuzzReport(f *testing.F) {
	f.Add(`{"Action":"skip","Package":"p","Test":"T"}`)
	f.Add(`{"Action":"output","Test":"T","Output":"x"}` + "\n" + `{"Action":"fail"}`)
	f.Fuzz(func(t *testing.T, in string) {
		r := newReport(new(strings.Builder), false)
		r.read(strings.NewReader(in))
		r.close()
	})
}
