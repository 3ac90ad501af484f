// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"fmt"
	"io"
	"os"
)

// A counter is a number in a file that nothing protects: whoever wants to raise
// it reads it, adds one and writes it back. Beside the number stands the token
// of the lease under which it was written, or 0.
type counter struct {
	file *os.File
}

// counterWidth keeps the record at one size, so that a write replaces all of it
// in one call and a reader meets a whole record.
const counterWidth = 40

func openCounter(path string) (counter, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	return counter{file}, err
}

// close closes the file. What was written is in the kernel's hands by then, so
// there is nothing left to fail.
func (c counter) close() { _ = c.file.Close() }

func (c counter) write(value, token int64) error {
	_, err := c.file.WriteAt(fmt.Appendf(nil, "%019d %019d\n", value, token), 0)
	return err
}

func (c counter) read() (value, token int64, err error) {
	record := make([]byte, counterWidth)
	if _, err := c.file.ReadAt(record, 0); err != nil && err != io.EOF {
		return 0, 0, err
	}
	if _, err := fmt.Sscanf(string(record), "%d %d", &value, &token); err != nil {
		return 0, 0, fmt.Errorf("counter file has %q: %w", record, err)
	}
	return value, token, nil
}
