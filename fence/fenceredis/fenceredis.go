// SPDX-License-Identifier: Apache-2.0

// Package fenceredis is a fence in Redis, for data in the same Redis. It works with leases of every
// lock store:
//
//	replies, err := fences.Do(ctx, lease, fenceredis.Command{"SET", "state:{order:42}", "paid"})
//
// Do runs commands in one script, which first compares the lease's token with the largest that was
// shown. Redis runs nothing else meanwhile, so the check and the writes are one atomic step. MULTI
// would do as well, but its commands can't depend on a comparison without another round trip.
//
// The fence of a key is a string beside the data. In a Cluster it is in the slot of the lock's key, so
// data that it protects needs the same hash tag: {order:42}, if the lock's key is order:42. If the
// lock's key has a hash tag itself, this one. Otherwise the server refuses with CROSSSLOT. Data of the lock's
// own name is there in any case. For a key that can be no hash tag, as a}b, it is the only such data.
package fenceredis

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/asynclock/asynclock-go/fence"
	"github.com/asynclock/asynclock-go/internal/redisslot"
	"github.com/asynclock/asynclock-go/store"
)

const (
	// DefaultRetention is how long Redis keeps a fence after its last use.
	DefaultRetention = 30 * 24 * time.Hour
	// MinRetention is the shortest retention: the longest TTL of a lease.
	MinRetention = store.MaxTTL
	// MaxWords is how many words all commands of one call may have, keys included. Lua's stack is not
	// much larger.
	MaxWords = 4096

	// maxRetention is far from what overflows in Redis.
	maxRetention = 100 * 365 * 24 * time.Hour
	// prefix begins the names of fences.
	prefix = "asynclock:fence:"
)

// ErrForeignData means that what is stored under the fence's name is no token. Nothing was written. It is
// asynclock.ErrForeignData.
var ErrForeignData = store.ErrForeignData

//go:embed fence.lua
var script string

// A Command is a command of Redis and its arguments, as for redis-cli. The second word is the key. If
// it needs more keys, they have to be in the same slot.
type Command []string

// A Fence refuses commands that come too late. It has no state of its own: all Fences with the same
// resource on the same Redis are one. It is safe for concurrent use.
//
// The fence lasts as long as Redis keeps the data beside it. A failover that loses the latest writes
// loses their tokens with them. Eviction may drop a fence, so use the policy noeviction. A holder that
// sleeps for longer than the retention after the last write is not refused.
type Fence struct {
	client Client
	settings
}

type settings struct {
	resource  string
	retention time.Duration
}

// New makes a Fence. It sends nothing. Its error is [fence.ErrInvalidOption].
func New(c Client, opts ...Option) (*Fence, error) {
	f := &Fence{client: c, settings: settings{retention: DefaultRetention}}
	for _, o := range opts {
		if o == nil {
			return nil, fmt.Errorf("%w: nil", fence.ErrInvalidOption)
		}
		o(&f.settings)
	}
	switch {
	case c.refused != nil:
		return nil, c.refused
	case c.eval == nil:
		return nil, fmt.Errorf("%w: no client", fence.ErrInvalidOption)
	case f.retention < MinRetention || f.retention > maxRetention:
		return nil, fmt.Errorf("%w: retention %v", fence.ErrInvalidOption, f.retention)
	}
	return f, fence.CheckResource(f.resource)
}

// An Option is for [New].
type Option func(*settings)

// WithResource names what the commands write to, in at most 64 bytes of UTF-8. Fences of different
// resources know nothing of each other. The default is no name: the Redis as a whole. Name resources
// if two lock stores have keys of the same name, whose tokens have nothing to do with each other.
func WithResource(name string) Option { return func(s *settings) { s.resource = name } }

// WithRetention sets how long Redis keeps a fence after its last use, from [MinRetention] to a hundred
// years. Choose more than a holder could ever sleep. Default [DefaultRetention].
func WithRetention(d time.Duration) Option { return func(s *settings) { s.retention = d } }

// Do runs commands in turn, in one atomic step, unless the token of h is smaller than one that was
// shown before. It returns the reply of each: nil, an int64, a string, or a []any of these, as the
// client decodes them. Commands that only read are as welcome; a token that is shown with them counts.
//
// A [*fence.StaleError] says that a later holder has been here. No command ran then. If a command
// fails, those before it have run, as in a MULTI, and those after it have not. Do does not check that
// the lease is still held.
//
// Other errors: those of [fence.Check], [fence.ErrInvalidOption] for a command without a name or a
// key, [ErrForeignData], and the client's, inside another error. After an error of the network, the
// commands may have run. A client that sends commands again may run them twice: MaxRetries of go-redis
// is 3 by default.
func (f *Fence) Do(ctx context.Context, h fence.Holder, commands ...Command) ([]any, error) {
	if err := fence.Check(h); err != nil {
		return nil, err
	}
	stamp, err := fence.NewStamp(h.Key(), h.Token())
	if err != nil {
		return nil, err
	}
	return f.do(ctx, fence.Stamps{stamp}, commands)
}

// DoAll is [Fence.Do] for all keys of h, which may be a lease of several keys (asynclock.MultiLease). It is one step as well:
// the commands run if no token is smaller than one that was shown before, and otherwise no token counts. In a
// Cluster, all these keys need one hash tag. Other errors: those of [fence.NewStamps].
func (f *Fence) DoAll(ctx context.Context, h fence.Holders, commands ...Command) ([]any, error) {
	stamps, err := fence.NewStamps(h)
	if err != nil {
		return nil, err
	}
	return f.do(ctx, stamps, commands)
}

// do runs the script. The stamps have been checked.
func (f *Fence) do(ctx context.Context, stamps fence.Stamps, commands []Command) ([]any, error) {
	if f == nil || f.client.eval == nil {
		return nil, fmt.Errorf("%w: a Fence comes from New", fence.ErrInvalidOption)
	}
	if err := checkCommands(ctx, commands); err != nil {
		return nil, err
	}
	var keys []string
	args := []string{strconv.FormatInt(f.retention.Milliseconds(), 10), strconv.Itoa(len(stamps))}
	for _, s := range stamps {
		keys = append(keys, f.name(s.Key()))
		args = append(args, strconv.FormatInt(s.Token(), 10))
	}
	for _, c := range commands {
		keys = append(keys, c[1])
		args = append(args, strconv.Itoa(len(c)-1), c[0])
		args = append(args, c[2:]...)
	}
	reply, err := f.client.eval(ctx, script, keys, args)
	if err != nil {
		return nil, fmt.Errorf("fenceredis: %q: %w", stamps.Keys(), err)
	}
	return f.verdict(stamps, reply)
}

func checkCommands(ctx context.Context, commands []Command) error {
	if ctx == nil || len(commands) == 0 {
		return fmt.Errorf("%w: no context, or no command", fence.ErrInvalidOption)
	}
	words := 0
	for _, c := range commands {
		if len(c) < 2 || c[0] == "" || c[1] == "" {
			return fmt.Errorf("%w: a command needs a name and a key", fence.ErrInvalidOption)
		}
		words += len(c)
	}
	if words > MaxWords {
		return fmt.Errorf("%w: commands of %d words, at most %d are allowed", fence.ErrInvalidOption, words, MaxWords)
	}
	return nil
}

var errReply = errors.New("the script answers with what it never should")

// verdict reads the script's answer.
func (f *Fence) verdict(stamps fence.Stamps, reply any) ([]any, error) {
	answer, _ := reply.([]any)
	if len(answer) > 0 && answer[0] == int64(1) {
		return answer[1:], nil
	}
	if len(answer) < 2 {
		return nil, fmt.Errorf("fenceredis: %q: %w", stamps.Keys(), errReply)
	}
	i, _ := answer[1].(int64) // which fence it is about
	if i < 1 || i > int64(len(stamps)) {
		return nil, fmt.Errorf("fenceredis: %q: %w", stamps.Keys(), errReply)
	}
	switch s := stamps[i-1]; answer[0] {
	case int64(0):
		if len(answer) == 3 {
			text, _ := answer[2].(string)
			newest, err := strconv.ParseInt(text, 10, 64)
			if err == nil {
				err = fence.Admit(s, f.resource, newest)
			}
			if errors.Is(err, fence.ErrStale) {
				return nil, err
			}
		}
		fallthrough // more digits than a token has
	case int64(-1):
		return nil, fmt.Errorf("fenceredis: the fence of %q: %w", s.Key(), ErrForeignData)
	}
	return nil, fmt.Errorf("fenceredis: %q: %w", stamps.Keys(), errReply)
}

// name returns the Redis key of a fence, which is in the slot of the lock's key. It has that key's hash tag, or all of the
// key in braces. Braces can't enclose a key that has a closing one itself, so such a key has a number for a tag.
func (f *Fence) name(key string) string {
	tag := redisslot.Hashed(key)
	if strings.Contains(tag, "}") {
		tag = redisslot.Tag(key)
	}
	return prefix + "{" + tag + "}:" + url.QueryEscape(f.resource) + ":" + key
}
