// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"io/fs"
	"strings"
	"testing"
)

func TestFragments(t *testing.T) {
	for source, want := range map[string]string{
		"return 1":                                      "return 1",
		"x = '<% day %>' -- ms":                         "x = '86400000' -- ms",
		"<% record a | b(1, 2) | c | 'h' | d %>":        "a .. ' ' .. b(1, 2) .. ' ' .. c .. ' h ' .. d",
		"<% record a | '-' | '-' | '-' | b %>":          "a .. ' - - - ' .. b",
		"<% entry a | b | c | d | e %>":                 "a .. ' ' .. b .. ' ' .. c .. ' ' .. d .. ' ' .. e",
		"<% epoch a | b | c | d | e | f %>":             "string.format('%s %.0f %.0f %.0f %.0f %.0f', a, b, c, d, e, f)",
		"<% group k | a | b | c | d | e | f | g | h %>": "string.format('%s %.0f %.0f %.0f %.0f %.0f %.0f %.0f %s', k, a, b, c, d, e, f, g, h)",
		"<% member a | '-' | b | c | d | e %>":          "a .. ' - ' .. b .. ' ' .. c .. ' ' .. d .. ' ' .. e",
		"<% pattern group %>":                           "'^(=[rp]) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%S+)$'",
		"<% pattern member | weight token holder %>":    "'^%S+ %S+ (%d+) %d+ (%d+) (.*)$'",
		"<% admitted a | b | c | d | e | f %>":          "'s ' .. a .. ' ' .. b .. ' ' .. c .. ' ' .. d .. ' ' .. e .. ' ' .. f",
		"x and not <% token t %>":                       "x and not (#t <= 16 and string.find(t, '^%d+$') ~= nil and t + 0 <= 9e15)",
		"not <% hasHistory info | id %>":                "not (string.find(info, 'master_replid:' .. id .. '\\r', 1, true) ~= nil)",
		"<% sharing f %>":                               "string.find(f, '[rp]')",
		"<% pattern record | token owner %>":            "'^(%d+) (%S+) '",
		"<% pattern epoch %>":                           "'^(%x+) (%d+) (%d+) (%d+) (%d+) (%d+)$'",
		"<% pattern record | channel holder %>":         "'^%d+ %S+ (%S+) %S+ (.*)$'",
		"<% pattern entry | holder %>":                  "'^%d+ %S+ %d+ %S+ (.*)$'",
		"<% pattern entry | deadline mode name %>":      "'^(%d+) ([psu-])(%S*) '",
		"<% pattern entry | ttl flags %>":               "'^%d+ %S+ ([1-9]%d*) (%S+) '",
		"<% granted a | b | c | d | '1' %>":             "'g ' .. a .. ' ' .. b .. ' ' .. c .. ' ' .. d .. ' 1'",
		"f = <% addFlag f | t %>\nm = <% wanted o%>":    "f = f == '-' and 't' or f .. 't'\nm = 'w ' .. o",
	} {
		if got, err := expand(source); got != want || err != nil {
			t.Errorf("%s: got %q, %v; want %q", source, got, err, want)
		}
	}
}

func TestMistakesInFragmentsAreFound(t *testing.T) {
	for source, want := range map[string]string{
		"<% day":                              "not closed",
		"<% %>":                               "unknown",
		"<% night %>":                         "unknown",
		"<% day 1 %>":                         "got 1 arguments, want 0",
		"<% record a | b %>":                  "got 2 words, want 5",
		"<% epoch a | b %>":                   "got 2 words, want 6",
		"<% publish mode | name %>":           "got 2 arguments, want 3",
		"<% pattern %>":                       "want a format",
		"<% pattern ticket | owner %>":        "want a format",
		"<% pattern record | owner token %>":  `no word "token"`,
		"<% pattern record | token mode %>":   `no word "mode"`,
		"<% pattern epoch | id ready turns%>": `no word "turns"`,
		"<% include nothing.lua %>":           "nothing.lua",
	} {
		if got, err := expand(source); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %q, %v; want an error with %q", source, got, err, want)
		}
	}
}

// A delimiter that is left over would be found by a server only.
func TestFilesExpandWhole(t *testing.T) {
	files, err := fs.Glob(luaFiles, "*.lua")
	if err != nil || len(files) == 0 {
		t.Fatalf("files: got %q, %v; want some", files, err)
	}
	for _, file := range files {
		got, err := expand("<% include " + file + " %>")
		if err != nil || strings.Contains(got, "<%") || strings.Contains(got, "%>") {
			t.Errorf("%s: got %v and\n%s\nwant no delimiters", file, err, got)
		}
	}
}
