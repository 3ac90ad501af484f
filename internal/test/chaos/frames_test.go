// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"strings"
	"testing"
)

func TestReadFrame(t *testing.T) {
	t.Parallel()
	frames := []string{
		"+OK\r\n",
		"-ERR no\r\n",
		":42\r\n",
		"_\r\n",
		"$5\r\nhello\r\n",
		"$2\r\n\r\n\r\n",
		"$0\r\n\r\n",
		"$-1\r\n",
		"*-1\r\n",
		"*2\r\n$1\r\na\r\n*1\r\n:1\r\n",
		"%1\r\n+a\r\n*0\r\n",
		"|1\r\n+a\r\n:1\r\n+OK\r\n",
		"~1\r\n#t\r\n",
		">3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$3\r\ng x\r\n",
	}
	in := bufio.NewReader(strings.NewReader(strings.Join(frames, "")))
	for _, want := range frames {
		got, err := readFrame(in)
		if err != nil || string(got) != want {
			t.Fatalf("got %q, %v, want %q", got, err, want)
		}
	}
}

func TestReadFrameRefusesNonsense(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "\r\n", "x1\r\n", "$x\r\n", "$5\r\nhel", "*2\r\n:1\r\n", "$-2\r\n", "*99999999999\r\n", "$99999999\r\n",
		strings.Repeat("*1\r\n", 100) + ":1\r\n",
	} {
		if got, err := readFrame(bufio.NewReader(strings.NewReader(text))); err == nil {
			t.Errorf("%q: got %q, want an error", text, got)
		}
	}
}

func TestIsMessage(t *testing.T) {
	t.Parallel()
	for frame, want := range map[string]bool{
		">3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nx\r\n":   true,
		"*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nx\r\n":   true,
		">3\r\n$8\r\nsmessage\r\n$1\r\nc\r\n$1\r\nx\r\n":  true,
		">3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n":      false,
		"$7\r\nmessage\r\n":                               false,
		"+message\r\n":                                    false,
		">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n":    false,
		">4\r\n$8\r\npmessage\r\n+a\r\n+b\r\n$1\r\nx\r\n": false,
	} {
		if got := isMessage([]byte(frame)); got != want {
			t.Errorf("%q: got %t, want %t", frame, got, want)
		}
	}
}

func FuzzReadFrame(f *testing.F) {
	f.Add([]byte("*2\r\n$1\r\na\r\n%1\r\n+a\r\n:1\r\n"))
	f.Add([]byte(">3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$3\r\ng x\r\n"))
	f.Add([]byte("$99\r\nx"))
	f.Fuzz(func(t *testing.T, text []byte) {
		in := bufio.NewReader(bytes.NewReader(text))
		for rest := text; ; {
			frame, err := readFrame(in)
			if err != nil {
				return
			}
			if !bytes.HasPrefix(rest, frame) {
				t.Fatalf("got %q, which is not what %q begins with", frame, rest)
			}
			rest = rest[len(frame):]
			isMessage(frame)
		}
	})
}
