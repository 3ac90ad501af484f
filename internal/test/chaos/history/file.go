// SPDX-License-Identifier: Apache-2.0

package history

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

const suffix = ".jsonl"

// A File is one process' part of a history. It is safe for concurrent use.
type File struct {
	mu   sync.Mutex
	file *os.File
	line bytes.Buffer
	err  error
}

// Create begins a part of the history in dir.
func Create(dir, name string) (*File, error) {
	file, err := os.OpenFile(filepath.Join(dir, name+suffix), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	return &File{file: file}, nil
}

// Add appends a record. It is with the operating system when Add returns, so
// that a process that is killed loses none. Errors are told by Close.
func (f *File) Add(r Record) {
	r.Wall = time.Now().UnixNano()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.line.Reset()
	err := json.NewEncoder(&f.line).Encode(&r)
	if err == nil {
		_, err = f.file.Write(f.line.Bytes())
	}
	f.err = errors.Join(f.err, err)
}

// Close ends the file and says whether anything went wrong with it.
func (f *File) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return errors.Join(f.err, f.file.Close())
}

// ReadDir reads all parts of the history in dir.
func ReadDir(dir string) (all []Record, err error) {
	names, err := filepath.Glob(filepath.Join(dir, "*"+suffix))
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	for _, name := range names {
		file, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		all, err = Read(all, file)
		if err = errors.Join(err, file.Close()); err != nil {
			return nil, fmt.Errorf("%s: %w", filepath.Base(name), err)
		}
	}
	return all, nil
}

// Read appends the records of one part. A last line without an end is one that
// its process was killed over, and does not count; anything else that is no
// record is an error.
func Read(to []Record, from io.Reader) ([]Record, error) {
	lines := bufio.NewReader(from)
	for number := 1; ; number++ {
		line, err := lines.ReadBytes('\n')
		switch {
		case errors.Is(err, io.EOF):
			return to, nil
		case err != nil:
			return nil, err
		}
		var r Record
		decoder := json.NewDecoder(bytes.NewReader(line))
		decoder.DisallowUnknownFields()
		if err = decoder.Decode(&r); err == nil {
			err = r.Check()
		}
		if err == nil && decoder.More() {
			err = errors.New("more than one record")
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		to = append(to, r)
	}
}
