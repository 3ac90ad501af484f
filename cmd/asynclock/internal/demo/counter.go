// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"fmt"
	"io"
	"os"
)

// A counter is a number in an unprotected file. A process that increments it reads it, adds one and
// writes it back. Next to the number is the token of the lease under which it was written, or 0.
type counter struct {
	file *os.File
}

// counterWidth is the fixed size of the record. A write replaces all of it in one call, so a reader
// sees a whole record.
const counterWidth = 40

func openCounter(path string) (counter, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	return counter{file}, err
}

// close closes the file. The kernel already has the written data, so an error means nothing.
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
