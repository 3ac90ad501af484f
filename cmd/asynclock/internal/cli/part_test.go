// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestRunTogetherWithOthers(t *testing.T) {
	t.Parallel()
	redis := startRedis(t)
	bin := program(t)
	for _, c := range []struct {
		name           string
		holder, beside []string
		refused        []string
		says           string
		shown          []string
	}{
		{
			"readers",
			[]string{"--shared"},
			[]string{"--shared"},
			nil,
			"is held by",
			[]string{`"mode":"shared"`},
		},
		{
			"permits",
			[]string{"--permits", "2", "--of", "3"},
			[]string{"--permits", "1", "--of", "3"},
			[]string{"--permits", "2", "--of", "3"},
			`taken: 2 of 3 permits of "k permits" (`,
			[]string{`"mode":"permits"`, `"used":2`, `"limit":3`, `"weight":2`},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			key, file := "k "+c.name, filepath.Join(t.TempDir(), "started")
			run := func(flags []string, command ...string) []string {
				return slices.Concat([]string{"run", key, "--wait", "0"}, flags, []string{"--"}, command)
			}
			done := redis.background(t.Context(), run(c.holder, bin, "sleep", file)...)
			exists(t, file)
			redis.run(t, run(c.beside, bin, "exit", "0")...).want(t, 0)
			redis.run(t, run(c.refused, bin, "exit", "0")...).want(t, 75, c.says)
			shown := redis.run(t, "inspect", "--json", key)
			shown.want(t, 0)
			for _, text := range c.shown {
				if !strings.Contains(shown.stdout, text) {
					t.Errorf("got %s, want it to contain %s", shown.stdout, text)
				}
			}
			redis.run(t, "unlock", "--force", "--token", "0", key).want(t, 0)
			finished(t, done).want(t, 79, "unlocked by force")
		})
	}
}

func TestPermitsAreSet(t *testing.T) {
	t.Parallel()
	redis := startRedis(t)
	bin := program(t)
	redis.run(t, "permits", "k", "2").want(t, 0)
	if shown := redis.run(t, "inspect", "k").stdout; !strings.Contains(shown, "permits set  2\n") {
		t.Errorf("got %q, want it to contain the number", shown)
	}
	redis.run(t, "run", "k", "--permits", "3", "--of", "3", "--", bin, "exit", "0").want(t, 64, "more permits than there are")
	redis.run(t, "permits", "k", "0").want(t, 0)
	redis.run(t, "run", "k", "--permits", "3", "--of", "3", "--", bin, "exit", "0").want(t, 0)
}

func TestPartsThatMakeNoSense(t *testing.T) {
	t.Parallel()
	redis := startRedis(t)
	for _, flags := range [][]string{
		{"--shared", "--permits", "1", "--of", "1"},
		{"--shared", "--min-hold", "1s"},
		{"--permits", "1"},
		{"--of", "1"},
		{"--permits", "2", "--of", "1"},
		{"--permits", "-1", "--of", "1"},
		{"--permits", "1", "--of", "1000001"},
	} {
		args := slices.Concat([]string{"run", "k"}, flags, []string{"--", "true"})
		redis.run(t, args...).want(t, 64, "--help")
	}
	for _, args := range [][]string{{"permits", "k"}, {"permits", "k", "many"}, {"permits", "k", "-1"}, {"permits", "", "1"}} {
		redis.run(t, args...).want(t, 64, "--help")
	}
}
