// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"errors"
	"fmt"
	"strings"
)

// The scripts share formats, which are defined here. A script asks for a fragment of Lua as
// <% name argument | argument %>, where the arguments are Lua, and gets it in place. A Lua
// function would be too slow: creating one costs more than a command.
//
// "<%" is in no Lua program, because no Lua expression begins with "%". The usual "{{" begins
// a table of tables.
//
// This is not text/template. A program that links text/template keeps every exported method
// of every type, and rueidis has many. A program that takes one lock had 24 MB with it, and
// has 9 MB without.

// A format describes a text of words, with a space between them. The last word may contain
// spaces.
type format []word

type word struct {
	name    string
	pattern string // of the whole word, for a script that reads it
	skipped string // of the whole word, for a script that does not, if it is another pattern
}

var (
	// A record is the value of a lock's first key, and describes its holder:
	//
	//	token    its fencing token
	//	owner    its owner id; '-' in a record that keeps the key back
	//	channel  how it is notified
	//	flags    what it requested and what it was given
	//	holder   its description, which may be anything
	record = format{
		{name: "token", pattern: "%d+"},
		{name: "owner", pattern: "%S+"},
		{name: "channel", pattern: "%S+"},
		{name: "flags", pattern: "%S+"},
		{name: "holder", pattern: ".*"},
	}

	// An entry describes a waiter, in the hash of waiters. Its owner is the field's name.
	//
	//	deadline  the ms at which it counts as dead
	//	channel   how it is notified
	//	ttl       the ms for which it holds the key if it is notified of the grant
	//	flags     those of its record
	//	holder    its description, which may be anything
	entry = format{
		{name: "deadline", pattern: "%d+"},
		{name: "channel", pattern: "%S+"},
		{name: "ttl", pattern: "[1-9]%d*", skipped: "%d+"}, // SET refuses 0
		{name: "flags", pattern: "%S+"},
		{name: "holder", pattern: ".*"},
	}

	// A group is the value of a lock's first key while several share it, or could:
	//
	//	kind   =r for readers, =p for permits
	//	token  the last one given to one of them
	//	shown  the token that others see: of readers the fence, of permits token
	//	kept   the latest ms until which a part is held back; 0: none is
	//	used   how many permits are out; of readers 0
	//	limit  the smallest number of permits that one of them counts on; of readers 0
	//	agree  how many of them count on that; of readers 0
	//	other  on how many larger numbers the others count; shares.lua says where these are
	//	writer the owner that had all of the key before it became a reader; '-': none
	group = format{
		{name: "kind", pattern: "=[rp]"},
		{name: "token", pattern: "%d+"},
		{name: "shown", pattern: "%d+"},
		{name: "kept", pattern: "%d+"},
		{name: "used", pattern: "%d+"},
		{name: "limit", pattern: "%d+"},
		{name: "agree", pattern: "%d+"},
		{name: "other", pattern: "%d+"},
		{name: "writer", pattern: "%S+"},
	}

	// A member describes one of a group, in the hash of members. Its owner is the field's name.
	// The name of a part that is held back begins with a hyphen and a space, as no owner's does.
	//
	//	channel  how it is notified
	//	flags    what it requested: h, w
	//	weight   its permits; of a reader 0
	//	limit    how many permits there are, as it believes; of a reader 0
	//	token    that of its grant
	//	holder   its description, which may be anything
	member = format{
		{name: "channel", pattern: "%S+"},
		{name: "flags", pattern: "%S+"},
		{name: "weight", pattern: "%d+"},
		{name: "limit", pattern: "%d+"},
		{name: "token", pattern: "%d+"},
		{name: "holder", pattern: ".*"},
	}

	// An epoch is a server's record about itself, for a bucket of keys:
	//
	//	id       of its replication history
	//	ready    the ms from which on it grants
	//	longest  the longest TTL (ms) of this period
	//	older    the longest TTL (ms) of the period before
	//	turn     the ms at which this period ends
	//	noted    the ms that the clock showed lately
	epoch = format{
		{name: "id", pattern: "%x+"},
		{name: "ready", pattern: "%d+"},
		{name: "longest", pattern: "%d+"},
		{name: "older", pattern: "%d+"},
		{name: "turn", pattern: "%d+"},
		{name: "noted", pattern: "%d+"},
	}

	// A cause is what is known about the grace of an epoch. Its Redis key is that of the epoch, with another last letter:
	//
	//	id      of the replication history that was new
	//	run     the id of the process that has this history; '-': not known
	//	ready   the ms from which on the epoch grants, which says what grace is meant
	//	since   the ms at which the grace began
	//	was     the id of the history before; '-': there was no epoch; '?': not known
	//	ran     the id of the process that had that history; '-': not known
	//	used    the ms that the clock showed when that history was last used; 0: there was none
	//	before  the ms from which on that history granted
	//	opened  the ms from which on keys are granted because somebody has ended the grace; 0: nobody has
	cause = format{
		{name: "id", pattern: "%x+"},
		{name: "run", pattern: "%S+"},
		{name: "ready", pattern: "%d+"},
		{name: "since", pattern: "%d+"},
		{name: "was", pattern: "%S+"},
		{name: "ran", pattern: "%S+"},
		{name: "used", pattern: "%d+"},
		{name: "before", pattern: "%d+"},
		{name: "opened", pattern: "%d+"},
	}

	// A note is what a holder has written beside its key:
	//
	//	token  of the lease that wrote it
	//	seq    its number among the notes of that lease
	//	data   any bytes
	note = format{
		{name: "token", pattern: "%d+"},
		{name: "seq", pattern: "%d+"},
		{name: "data", pattern: ".*"},
	}

	formats = map[string]format{"note": note, "record": record, "entry": entry, "group": group, "member": member, "epoch": epoch, "cause": cause}
)

// A channel begins with its mode, a letter that says how its client is notified. The
// rest is its name.
//
//	p  by PUBLISH; this server knows who receives it
//	s  by SPUBLISH; this server knows who receives it
//	u  by PUBLISH; this server does not know who receives it, since another node may serve them
//	-  not at all; the client polls
//
// A script that reads the words "mode name" gets the channel in these parts.
const channelParts = "([psu-])(%S*)"

// Flags are letters, or '-' for none:
//
//	h  the holder asks to be notified when somebody queues behind it
//	w  the holder asks to be notified each time that somebody requests the key in vain
//	t  the token was the clock's time, not merely the last one plus one
//	g  the waiter requested the key in the grace, and believes no token from before its end
//	r  the waiter shares the key with other readers
//	p  the waiter takes permits, of which three numbers follow: p2+1/5 are two, of five that there
//	   are, and one more if it is free

// Several macros have these in common.
const (
	tokenDigits = "16"
	maxToken    = "9e15"
	dayMillis   = "86400000"
)

// A macro is a piece of Lua with parameters.
type macro struct {
	parameters []string
	lua        string
}

var macros = map[string]macro{
	// The lifetime of what an idle lock leaves behind, in ms.
	"day": {nil, dayMillis},

	// How often an epoch that is used notes the clock, and how far behind the note tokens may have
	// come before the next note; in ms.
	"noteEvery":  {nil, "1000"},
	"givenAfter": {nil, "3000"},

	// The largest token. It is the clock of the year 2255. Doubles would soon skip numbers behind it,
	// so a token could be given twice.
	"maxToken": {nil, maxToken},

	// Whether a text is a token, and whether digits that a pattern has found are one. All operands are
	// comparisons: where a call returns nil before one, miniredis' Lua forgets to assign the nil to a local.
	"token":       {[]string{"$text"}, "(#$text <= " + tokenDigits + " and string.find($text, '^%d+$') ~= nil and $text + 0 <= " + maxToken + ")"},
	"tokenDigits": {[]string{"$digits"}, "(#$digits <= " + tokenDigits + " and $digits + 0 <= " + maxToken + ")"},

	// Whether the server of this INFO has the history with this id, and not with a longer one.
	"hasHistory": {[]string{"$info", "$id"}, "(string.find($info, 'master_replid:' .. $id .. '\\r', 1, true) ~= nil)"},

	// For how long the grace of an epoch still lasts, in ms; 0 or less: it is over.
	"graceLeft": {[]string{"$ready", "$ms"}, "($ready - $ms)"},

	// At least each token from before the end of that grace, and at most each later token.
	"graceMark": {[]string{"$ready"}, "($ready * 1000 - 1)"},

	// The period of an epoch. If the clock was set back, the time is before the period, or before what was noted.
	"periodOver":   {[]string{"$turn", "$ms"}, "($ms >= $turn + 0)"},
	"beforePeriod": {[]string{"$turn", "$ms"}, "($turn - " + dayMillis + " > $ms)"},
	"beforeNoted":  {[]string{"$noted", "$ms"}, "($ms < $noted + 0)"},

	// A vacancy is the value of a lock's first key while nobody holds the key: the last token. Redis
	// keeps a value of digits alone as a number, which takes 48 bytes less than a text.
	"vacant": {[]string{"$value"}, "string.match($value, '^(%d+)$')"},

	// Whether a waiter with these flags shares the key; and of permits the three numbers.
	"sharing": {[]string{"$flags"}, "string.find($flags, '[rp]')"},
	"permits": {[]string{"$flags"}, "string.match($flags, 'p(%d+)%+(%d+)/(%d+)')"},

	"addFlag": {[]string{"$flags", "$letter"}, "$flags == '-' and '$letter' or $flags .. '$letter'"},

	// A failure is no error: without the right to publish, or on a server without pub-sub,
	// waiters poll.
	"publish": {[]string{"$mode", "$name", "$message"}, "redis.pcall($mode == 's' and 'SPUBLISH' or 'PUBLISH', $name, $message)"},

	// The answer's second element is how many would receive a message.
	"receivers": {[]string{"$mode", "$name"}, "redis.pcall('PUBSUB', $mode == 's' and 'SHARDNUMSUB' or 'NUMSUB', $name)"},

	// The messages, which parseMessage reads.
	"granted":   {[]string{"$owner", "$token", "$ttl", "$waiters", "$clocked"}, "'g ' .. $owner .. ' ' .. $token .. ' ' .. $ttl .. ' ' .. $waiters .. ' ' .. $clocked"},
	"admitted":  {[]string{"$owner", "$token", "$ttl", "$waiters", "$fence", "$weight"}, "'s ' .. $owner .. ' ' .. $token .. ' ' .. $ttl .. ' ' .. $waiters .. ' ' .. $fence .. ' ' .. $weight"},
	"contended": {[]string{"$owner"}, "'c ' .. $owner"},
	"wanted":    {[]string{"$owner"}, "'w ' .. $owner"},
	"wake":      {[]string{"$owner"}, "'a ' .. $owner"},
	"forced":    {[]string{"$owner"}, "'r ' .. $owner"},

	// The announcements, which parseAnnouncement reads.
	"announced": {
		[]string{"$key", "$token", "$seq", "$remaining", "$holder", "$data"},
		"'n ' .. $key .. ' ' .. $token .. ' ' .. $seq .. ' ' .. $remaining .. ' ' .. #$holder .. ' ' .. $holder .. ' ' .. $data",
	},
	"ended": {[]string{"$key", "$token"}, "'e ' .. $key .. ' ' .. $token"},
}

// expand replaces a script's requests for fragments by their Lua.
func expand(source string) (string, error) {
	var lua strings.Builder
	for {
		before, rest, found := strings.Cut(source, "<%")
		lua.WriteString(before)
		if !found {
			return lua.String(), nil
		}
		request, after, closed := strings.Cut(rest, "%>")
		if !closed {
			line, _, _ := strings.Cut(rest, "\n")
			return "", fmt.Errorf("<%%%s: not closed", line)
		}
		inline, err := fragment(strings.TrimSpace(request))
		if err != nil {
			return "", fmt.Errorf("<%%%s%%>: %w", request, err)
		}
		lua.WriteString(inline)
		source = after
	}
}

// fragment returns the Lua for a request:
//
//	include FILE
//	FORMAT WORDS               an expression: that record. Of a group, an epoch and a cause some words are numbers
//	groupOfTexts WORDS         likewise, of a group whose words are all texts
//	pattern FORMAT | NAMES                             a pattern that captures these words
//	pattern FORMAT                                     a pattern that captures all words
//	MACRO ARGUMENTS
func fragment(request string) (string, error) {
	name, rest, _ := strings.Cut(request, " ")
	var arguments []string
	if rest != "" {
		arguments = strings.Split(rest, " | ")
	}
	switch name {
	case "include":
		source, err := luaFiles.ReadFile(rest)
		if err != nil {
			return "", err
		}
		return expand(strings.TrimSuffix(string(source), "\n"))
	case "group", "epoch", "cause":
		return formats[name].print(arguments)
	case "groupOfTexts":
		return group.join(arguments)
	case "pattern":
		return pattern(arguments)
	}
	if f := formats[name]; f != nil {
		return f.join(arguments)
	}
	return macros[name].expand(arguments)
}

func pattern(arguments []string) (string, error) {
	if len(arguments) == 0 || len(arguments) > 2 || formats[arguments[0]] == nil {
		return "", errors.New("want a format, and perhaps the names of words")
	}
	f := formats[arguments[0]]
	if len(arguments) == 2 {
		return f.match(strings.Fields(arguments[1]))
	}
	var all []string
	for _, w := range f {
		all = append(all, w.name)
	}
	return f.match(all)
}

func (m macro) expand(arguments []string) (string, error) {
	if m.lua == "" {
		return "", errors.New("unknown fragment")
	}
	if len(arguments) != len(m.parameters) {
		return "", fmt.Errorf("got %d arguments, want %d", len(arguments), len(m.parameters))
	}
	var replace []string
	for i, parameter := range m.parameters {
		replace = append(replace, parameter, arguments[i])
	}
	return literals(strings.NewReplacer(replace...).Replace(m.lua)), nil
}

// join returns an expression for the text of these words. Each is an expression for a
// string.
func (f format) join(words []string) (string, error) {
	if len(words) != len(f) {
		return "", fmt.Errorf("got %d words, want %d", len(words), len(f))
	}
	return literals(strings.Join(words, " .. ' ' .. ")), nil
}

// literals makes one of literals that follow one another.
func literals(expression string) string { return strings.ReplaceAll(expression, "' .. '", "") }

// print is join for numbers, of which Lua itself prints 14 digits only.
func (f format) print(words []string) (string, error) {
	if len(words) != len(f) {
		return "", fmt.Errorf("got %d words, want %d", len(words), len(f))
	}
	verbs := make([]string, len(f))
	for i, w := range f {
		verbs[i] = "%s"
		if w.pattern == "%d+" {
			verbs[i] = "%.0f"
		}
	}
	return fmt.Sprintf("string.format('%s', %s)", strings.Join(verbs, " "), strings.Join(words, ", ")), nil
}

// match returns a pattern that captures the words of these names, which come in the order
// of the format. It looks no further than the last of them.
func (f format) match(names []string) (string, error) {
	var parts []string
	for _, w := range f {
		switch {
		case len(names) == 0:
			return "'^" + strings.Join(parts, " ") + " '", nil
		case names[0] == w.name:
			parts = append(parts, "("+w.pattern+")")
			names = names[1:]
		case w.name == "channel" && len(names) > 1 && names[0] == "mode" && names[1] == "name":
			parts = append(parts, channelParts)
			names = names[2:]
		case w.skipped != "":
			parts = append(parts, w.skipped)
		default:
			parts = append(parts, w.pattern)
		}
	}
	if len(names) > 0 {
		return "", fmt.Errorf("no word %q, or not in this place", names[0])
	}
	return "'^" + strings.Join(parts, " ") + "$'", nil
}
