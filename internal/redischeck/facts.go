// SPDX-License-Identifier: Apache-2.0

package redischeck

import (
	_ "embed"
	"strconv"
	"strings"

	"github.com/asynclock/asynclock-go/internal/redisconn"
)

//go:embed ask.lua
var askLua string

// Script answers questions, which are its arguments: each is a command of two words that only reads.
var Script = redisconn.NewScript(askLua)

// InfoMemory is the question that [EvictionPolicy] reads the answer of.
const InfoMemory = "INFO memory"

// Facts are the fields of a section of INFO.
type Facts map[string]string

// ParseFacts reads a section.
func ParseFacts(text string) Facts {
	f := make(Facts)
	for line := range strings.Lines(text) {
		if name, value, found := strings.Cut(strings.TrimSpace(line), ":"); found && !strings.HasPrefix(name, "#") {
			f[name] = value
		}
	}
	return f
}

// Number returns a field that is a number, or 0.
func (f Facts) Number(name string) int64 {
	n, err := strconv.ParseInt(f[name], 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// evicts returns the policy by which the server deletes keys when its memory is full. It is empty if there is none.
func (f Facts) evicts() string {
	if policy := f["maxmemory_policy"]; policy != "noeviction" {
		return policy
	}
	return ""
}

// EvictionPolicy returns the policy by which a server deletes keys, from its answer to [InfoMemory]. It is empty if it
// deletes none, because its memory is never full, for example, and where the server does not say.
func EvictionPolicy(answer string) string {
	if f := ParseFacts(answer); f.Number("maxmemory") > 0 {
		return f.evicts()
	}
	return ""
}

// cutRefusal returns the error that the script was given instead of an answer, without a leading ERR.
func cutRefusal(text string) (refusal string, refused bool) {
	refusal, refused = strings.CutPrefix(text, "-")
	return strings.TrimPrefix(refusal, "ERR "), refused
}

// rightTo returns the name of the right to a command of two words.
func rightTo(question string) string {
	return strings.ReplaceAll(strings.ToLower(question), " ", "|")
}

// grant is the command that gives a user rights.
func grant(rights ...string) string {
	return "ACL SETUSER <user> +" + strings.Join(rights, " +")
}
