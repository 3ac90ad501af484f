// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/rueidis"
)

// A scriptTime is what scripts have cost the server since its start, as it counts by itself.
type scriptTime struct{ calls, micros float64 }

func (t scriptTime) since(before scriptTime) scriptTime {
	return scriptTime{t.calls - before.calls, t.micros - before.micros}
}

// scripts asks the server.
func scripts(ctx context.Context, client rueidis.Client) (scriptTime, error) {
	text, err := client.Do(ctx, client.B().Info().Section("commandstats").Build()).ToString()
	if err != nil {
		return scriptTime{}, err
	}
	return parseScripts(text)
}

// parseScripts reads INFO commandstats. A script that was never called has no line.
func parseScripts(text string) (sum scriptTime, err error) {
	for line := range strings.Lines(text) {
		name, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		switch name {
		case "cmdstat_eval", "cmdstat_evalsha", "cmdstat_fcall":
		default:
			continue
		}
		for field := range strings.SplitSeq(rest, ",") {
			key, digits, _ := strings.Cut(field, "=")
			to := map[string]*float64{"calls": &sum.calls, "usec": &sum.micros}[key]
			if to == nil {
				continue
			}
			v, err := strconv.ParseFloat(digits, 64)
			if err != nil {
				return sum, fmt.Errorf("INFO commandstats: %w", err)
			}
			*to += v
		}
	}
	return sum, nil
}
