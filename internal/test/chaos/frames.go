// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strconv"
)

// largestFrame is more than any reply in a run has; a length beyond it means
// that we have lost our place in the stream.
const largestFrame = 16 << 20

// readFrame reads one whole reply of a Redis server, or one message pushed by
// it, in version 2 or 3 of the protocol.
func readFrame(from *bufio.Reader) ([]byte, error) {
	return appendFrame(nil, from, 0)
}

func appendFrame(frame []byte, from *bufio.Reader, depth int) ([]byte, error) {
	line, err := from.ReadSlice('\n')
	if err != nil {
		return nil, err
	}
	if len(line) < 3 || depth > 32 || len(frame) > largestFrame {
		return nil, fmt.Errorf("not a reply: %q", line)
	}
	frame = append(frame, line...)
	parts := 0 // that follow
	switch kind := line[0]; kind {
	case '+', '-', ':', '_', ',', '#', '(':
		return frame, nil
	case '$', '=', '!':
		length, err := frameLength(line)
		if err != nil || length < 0 {
			return frame, err
		}
		begin := len(frame)
		frame = append(frame, make([]byte, length+2)...)
		_, err = io.ReadFull(from, frame[begin:])
		return frame, err
	case '*', '~', '>', '%', '|':
		if parts, err = frameLength(line); err != nil {
			return nil, err
		}
		switch kind {
		case '%':
			parts *= 2
		case '|':
			parts = 2*parts + 1 // attributes come before what they are about
		}
	default:
		return nil, fmt.Errorf("not a reply: %q", line)
	}
	for range parts {
		if frame, err = appendFrame(frame, from, depth+1); err != nil {
			return nil, err
		}
	}
	return frame, nil
}

func frameLength(line []byte) (int, error) {
	n, err := strconv.Atoi(string(bytes.TrimSpace(line[1:])))
	if err != nil || n < -1 || n > largestFrame {
		return 0, fmt.Errorf("not a length: %q", line)
	}
	return n, nil
}

// isMessage reports whether a frame is a message of pub-sub.
func isMessage(frame []byte) bool {
	if frame[0] != '>' && frame[0] != '*' {
		return false
	}
	_, rest, _ := bytes.Cut(frame, []byte("\r\n"))
	return bytes.HasPrefix(rest, []byte("$7\r\nmessage\r\n")) || bytes.HasPrefix(rest, []byte("$8\r\nsmessage\r\n"))
}
