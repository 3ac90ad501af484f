// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"github.com/redis/rueidis"

	"github.com/asynclock/asynclock-go/fence"
	"github.com/asynclock/asynclock-go/fence/fenceredis"
	"github.com/asynclock/asynclock-go/internal/test/chaos/history"
)

// A resource is what locks are there to protect: per key a number that writers
// read, and replace by one more. It checks tokens, and keeps a journal of what it
// accepted, which is the truth even about a writer that was killed.
type resource interface {
	name() string
	// read shows the token to the resource and returns the value. It is not
	// accepted if the resource has seen a larger token.
	read(ctx context.Context, key, op string, token int64) (value int64, accepted bool, err error)
	// write replaces the value, that was read, by value.
	write(ctx context.Context, key, op string, token, read, value int64) (accepted bool, err error)
	// journal lists the accepted writes of a key.
	journal(ctx context.Context, key string) ([]history.Record, error)
}

// A vault is a resource in a Redis server of its own, which suffers no faults: a
// resource that loses its largest token protects nothing. Its fence is fenceredis.
type vault struct {
	client rueidis.Client
	fences *fenceredis.Fence
}

func openVault(addr string) (vault, error) {
	client, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{addr}, ForceSingleClient: true, DisableCache: true,
		DisableRetry: true, // a write that is repeated would be two
	})
	if err != nil {
		return vault{}, err
	}
	fences, err := fenceredis.New(fenceredis.Rueidis(client))
	return vault{client, fences}, err
}

func (vault) name() string { return "redis" }

func (v vault) read(ctx context.Context, key, _ string, token int64) (int64, bool, error) {
	replies, accepted, err := v.ask(ctx, key, token, fenceredis.Command{"GET", "value:" + key})
	if !accepted || replies[0] == nil { // nobody has written yet
		return 0, accepted, err
	}
	value, err := strconv.ParseInt(fmt.Sprint(replies[0]), 10, 64)
	return value, err == nil, err
}

func (v vault) write(ctx context.Context, key, op string, token, read, value int64) (bool, error) {
	_, accepted, err := v.ask(
		ctx, key, token,
		fenceredis.Command{"SET", "value:" + key, strconv.FormatInt(value, 10)},
		fenceredis.Command{"RPUSH", "journal:" + key, fmt.Sprintf("%d %s %d %d", token, op, read, value)},
	)
	return accepted, err
}

// ask runs commands, unless the token is stale.
func (v vault) ask(ctx context.Context, key string, token int64, commands ...fenceredis.Command) (replies []any, accepted bool, err error) {
	holder, err := fence.NewStamp(key, token)
	if err != nil {
		return nil, false, err
	}
	replies, err = v.fences.Do(ctx, holder, commands...)
	if errors.Is(err, fence.ErrStale) {
		return nil, false, nil
	}
	return replies, err == nil, err
}

func (v vault) journal(ctx context.Context, key string) ([]history.Record, error) {
	lines, err := v.client.Do(ctx, v.client.B().Lrange().Key("journal:"+key).Start(0).Stop(-1).Build()).AsStrSlice()
	if err != nil {
		return nil, err
	}
	writes := make([]history.Record, len(lines))
	for i, line := range lines {
		if writes[i], err = parseWrite(v.name(), key, line); err != nil {
			return nil, err
		}
	}
	return writes, nil
}

// A ledger is a resource in plain files, one per key, each a journal under the
// system's file lock. Its last line has the largest token and the value. A line
// is written at once, so that a writer that is killed leaves a whole one or none.
type ledger struct{ dir string }

func (ledger) name() string { return "file" }

func (l ledger) read(_ context.Context, key, op string, token int64) (value int64, accepted bool, err error) {
	accepted, err = l.append(key, token, func(last int64) string {
		value = last
		return fmt.Sprintf("read %d %s %d %d\n", token, op, last, last)
	})
	return value, accepted, err
}

func (l ledger) write(_ context.Context, key, op string, token, read, value int64) (bool, error) {
	return l.append(key, token, func(int64) string {
		return fmt.Sprintf("write %d %s %d %d\n", token, op, read, value)
	})
}

// append adds a line, made from the last value, unless the token is stale.
func (l ledger) append(key string, token int64, line func(last int64) string) (accepted bool, err error) {
	file, err := os.OpenFile(l.path(key), os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, file.Close()) }() // which unlocks it
	if err := lockFile(file); err != nil {
		return false, err
	}
	largest, value, err := lastLine(file)
	if err != nil || token < largest {
		return false, err
	}
	_, err = file.WriteString(line(value))
	return err == nil, err
}

func (l ledger) path(key string) string { return filepath.Join(l.dir, key+".ledger") }

// lastLine returns the token and value of the last line, or zeros.
func lastLine(file *os.File) (token, value int64, err error) {
	const longest = 256
	size, err := file.Seek(0, io.SeekEnd)
	if err != nil || size == 0 {
		return 0, 0, err
	}
	tail := make([]byte, min(size, longest))
	if _, err := file.ReadAt(tail, size-int64(len(tail))); err != nil {
		return 0, 0, err
	}
	tail = bytes.TrimSuffix(tail, []byte("\n"))
	before := bytes.LastIndexByte(tail, '\n')
	if before < 0 && size > longest {
		return 0, 0, fmt.Errorf("%s: the last line is longer than %d bytes", file.Name(), longest) // its end alone may look like a line
	}
	line := string(tail[before+1:])
	var what, op string
	var read int64
	if _, err := fmt.Sscan(line, &what, &token, &op, &read, &value); err != nil {
		return 0, 0, fmt.Errorf("%s: line %q: %w", file.Name(), line, err)
	}
	return token, value, nil
}

func (l ledger) journal(_ context.Context, key string) (writes []history.Record, err error) {
	text, err := os.ReadFile(l.path(key))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	for line := range bytes.Lines(text) {
		rest, isWrite := bytes.CutPrefix(line, []byte("write "))
		if !isWrite {
			continue
		}
		w, err := parseWrite(l.name(), key, string(rest))
		if err != nil {
			return nil, err
		}
		writes = append(writes, w)
	}
	return writes, err
}

// parseWrite reads an entry of a journal: token, request, value read and written.
func parseWrite(resource, key, line string) (history.Record, error) {
	r := history.Record{Kind: history.Write, Key: key, Resource: resource}
	if _, err := fmt.Sscan(line, &r.Token, &r.Op, &r.Read, &r.Wrote); err != nil {
		return r, fmt.Errorf("journal of %s: line %q: %w", resource, line, err)
	}
	return r, nil
}
