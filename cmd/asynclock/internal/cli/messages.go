// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"io"
	"sync"
)

// maxMessages bounds how many messages are kept for a reader that does not read.
const maxMessages = 1000

// messages writes our messages without making the writer wait. A terminal that is scrolled back, or
// a pipe that nobody reads, must not keep us from renewing a lease or from ending a command. It is
// safe for concurrent use.
type messages struct {
	out io.Writer

	mu      sync.Mutex
	queue   [][]byte
	writing chan struct{} // closed when the queue has been written; nil: nothing is queued
}

// Write queues one message, and drops the oldest if too many are queued. It never
// fails.
func (m *messages) Write(text []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.queue) == maxMessages {
		m.queue = m.queue[1:]
	}
	m.queue = append(m.queue, bytes.Clone(text))
	if m.writing == nil {
		m.writing = make(chan struct{})
		go m.writeQueue(m.writing)
	}
	return len(text), nil
}

// writeQueue ends when all messages are written. flush waits for that.
func (m *messages) writeQueue(written chan<- struct{}) {
	defer close(written)
	for {
		m.mu.Lock()
		if len(m.queue) == 0 {
			m.writing = nil
			m.mu.Unlock()
			return
		}
		next := m.queue[0]
		m.queue = m.queue[1:]
		m.mu.Unlock()
		_, _ = m.out.Write(next) // there is nowhere to report this error
	}
}

// flush waits without a time limit until all messages are written. A program that ends may do so,
// because nothing depends on it any more.
func (m *messages) flush() {
	m.mu.Lock()
	writing := m.writing
	m.mu.Unlock()
	if writing != nil {
		<-writing
	}
}
