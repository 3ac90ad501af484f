// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"math"
	"time"
)

// A cast is a recording of a terminal. Its file has the format asciicast v2: a line with the header,
// and a line for each output.
type cast struct {
	header header
	events []event
}

type header struct {
	Version int `json:"version"`
	Width   int `json:"width"`
	Height  int `json:"height"`
}

// An event is what a program wrote at a time since the beginning.
type event struct {
	at   time.Duration
	text string
}

// encode returns the file.
func (c cast) encode() []byte {
	var b bytes.Buffer
	line := func(value any) {
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		_ = e.Encode(value) // of numbers and texts, to memory: it can't fail
	}
	line(c.header)
	for _, e := range c.events {
		line([]any{math.Round(e.at.Seconds()*1000) / 1000, "o", e.text})
	}
	return b.Bytes()
}
