// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/internal/plain"
)

const infoFieldsHelp = `
With --json, always these fields:
  key           the key
  held          whether anyone holds it
  holder        the holder's description of itself; empty if there is none
  token         the holder's fencing token; 0 if there is none
  remaining_ms  the rest of the holder's TTL, which it may renew; -1 if it has none
  waiters       how many clients are queued
  mode          exclusive, shared (by readers) or permits
  used          of permits: how many are out
  limit         of permits: how many there are; 0 if nobody has any
`

// addJSON gives a command the flag --json. It prints one object, or, unless each is empty, one for each of those.
func (a *app) addJSON(cmd *cobra.Command, each string) {
	usage := "print a JSON object"
	if each != "" {
		usage = "print one JSON object per " + each + " and line"
	}
	cmd.Flags().BoolVar(&a.asJSON, "json", false, usage)
}

// The JSON output for programs. Fields may be added, never renamed or removed.
type (
	infoJSON struct {
		Key         string `json:"key"`
		Held        bool   `json:"held"`
		Holder      string `json:"holder"`
		Token       int64  `json:"token"`
		RemainingMS int64  `json:"remaining_ms"`
		Waiters     int    `json:"waiters"`
		Mode        string `json:"mode"`
		Used        int    `json:"used"`
		Limit       int    `json:"limit"`
	}
	inspectJSON struct {
		infoJSON
		StoredLimit int          `json:"stored_limit"`
		Holders     []holderJSON `json:"holders"`
		Queue       []waiterJSON `json:"queue"`
	}
	holderJSON struct {
		Holder      string `json:"holder"`
		Token       int64  `json:"token"`
		Weight      int    `json:"weight"`
		RemainingMS int64  `json:"remaining_ms"`
	}
	waiterJSON struct {
		Holder string `json:"holder"`
		AgeMS  int64  `json:"age_ms"`
	}
	unlockJSON struct {
		Key      string `json:"key"`
		Unlocked bool   `json:"unlocked"`
	}
)

func newInfoJSON(info asynclock.Info) infoJSON {
	return infoJSON{
		Key: info.Key, Held: info.Held, Holder: info.Holder, Token: info.Token,
		RemainingMS: info.Remaining.Milliseconds(), Waiters: info.Waiters,
		Mode: info.Mode.String(), Used: info.Used, Limit: info.Limit,
	}
}

func newInspectJSON(info asynclock.Info) inspectJSON {
	queue := make([]waiterJSON, 0, len(info.Queue))
	for _, w := range info.Queue {
		queue = append(queue, waiterJSON{w.Holder, w.Age.Milliseconds()})
	}
	holders := make([]holderJSON, 0, len(info.Holders))
	for _, h := range info.Holders {
		holders = append(holders, holderJSON{h.Holder, h.Token, h.Weight, h.Remaining.Milliseconds()})
	}
	return inspectJSON{newInfoJSON(info), info.StoredLimit, holders, queue}
}

func printJSON(out io.Writer, value any) error {
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(value)
}

func printJSONLines(out io.Writer, infos []asynclock.Info) error {
	for _, info := range infos {
		if err := printJSON(out, newInfoJSON(info)); err != nil {
			return err
		}
	}
	return nil
}

// printTable prints one line per key, for people.
func printTable(out io.Writer, infos []asynclock.Info) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "KEY\tHOLDER\tTOKEN\tTTL LEFT\tWAITERS")
	for _, info := range infos {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%d\n", plain.Text(info.Key), orDash(info, plain.Text(info.Holder)),
			orDash(info, strconv.FormatInt(info.Token, 10)), orDash(info, plain.TTL(info.Remaining)), info.Waiters)
	}
	return table.Flush()
}

// printInfo prints everything about one key, for people.
func printInfo(out io.Writer, info asynclock.Info) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "key\t%s\n", plain.Text(info.Key))
	fmt.Fprintf(table, "holder\t%s\n", orDash(info, plain.Text(info.Holder)))
	fmt.Fprintf(table, "token\t%s\n", orDash(info, strconv.FormatInt(info.Token, 10)))
	fmt.Fprintf(table, "TTL left\t%s\n", orDash(info, plain.TTL(info.Remaining)))
	printShares(table, info)
	fmt.Fprintf(table, "waiters\t%d\n", info.Waiters)
	for i, w := range info.Queue {
		fmt.Fprintf(table, "  %d.\t%s, for %s\n", i+1, plain.Text(w.Holder), plain.Seconds(w.Age))
	}
	if more := info.Waiters - len(info.Queue); len(info.Queue) > 0 && more > 0 {
		fmt.Fprintf(table, "  ...\t%d more\n", more)
	}
	return table.Flush()
}

// printShares prints who has a part of the key, if several may.
func printShares(table io.Writer, info asynclock.Info) {
	if info.Mode == asynclock.Permits {
		fmt.Fprintf(table, "permits\t%d of %d\n", info.Used, info.Limit)
	}
	if info.StoredLimit > 0 {
		fmt.Fprintf(table, "permits set\t%d\n", info.StoredLimit)
	}
	if info.Mode == asynclock.Exclusive {
		return
	}
	for _, h := range info.Holders {
		weight := ""
		if h.Weight > 0 {
			weight = fmt.Sprintf(", %d permits", h.Weight)
		}
		fmt.Fprintf(table, "  -\t%s, token %d%s\n", plain.Text(h.Holder), h.Token, weight)
	}
}

func printUnlocked(out io.Writer, key string, unlocked bool) error {
	format := "%s: taken from its holder\n"
	if !unlocked {
		format = "%s: nobody held it\n"
	}
	_, err := fmt.Fprintf(out, format, plain.Text(key))
	return err
}

// describeHeld returns a description of the holder.
func describeHeld(held *asynclock.HeldError) string {
	var facts []string
	text := fmt.Sprintf("%q is held", held.Key)
	switch {
	case held.Used > 0:
		text = fmt.Sprintf("taken: %d of %d permits of %q", held.Used, held.Limit, held.Key)
		facts = append(facts, plain.Text(held.Holder))
	case held.Holder != "":
		text += " by " + plain.Text(held.Holder)
	}
	if held.Token != 0 {
		facts = append(facts, fmt.Sprintf("token %d", held.Token))
	}
	if held.Remaining >= 0 {
		facts = append(facts, plain.Seconds(held.Remaining)+" of its TTL left")
	}
	if held.Waiters > 0 {
		facts = append(facts, fmt.Sprintf("%d waiting", held.Waiters))
	}
	if len(facts) > 0 {
		text += " (" + strings.Join(facts, ", ") + ")"
	}
	return text
}

// heldBy returns the error of a request that finds the key so.
func heldBy(info *asynclock.Info) *asynclock.HeldError {
	return &asynclock.HeldError{
		Key: info.Key, Holder: info.Holder, Token: info.Token, Remaining: info.Remaining, Waiters: info.Waiters,
	}
}

// orDash returns text if the key is held, and a dash otherwise.
func orDash(info asynclock.Info, text string) string {
	if !info.Held {
		return "-"
	}
	return text
}
