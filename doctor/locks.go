// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/asynclock/asynclock-go/store"
)

const (
	locksTime = 5 * time.Second // for the listing
	mostKeys  = 10_000          // of the listing
	longQueue = 100             // a queue worth knowing
	mostNamed = 3               // keys that a finding names
)

// locks looks at the keys that are in use.
func (x *examination) locks(ctx context.Context) {
	if !x.alive {
		return
	}
	limited, cancel := context.WithTimeout(ctx, locksTime)
	defer cancel()
	u := usage{counted: !x.st.Features().Sessions}
	err := u.read(limited, x.session, x.settings.prefix)
	switch {
	case err == nil:
	case limited.Err() != nil:
		u.partly = true
	case errors.Is(err, store.ErrDenied), errors.Is(err, store.ErrUnsupported):
		x.fail("locks", Note, "the keys can't be listed", err)
		return
	default:
		x.fail("locks", Warn, "the list of keys broke off after "+count(u.held, "key", "keys"), err)
		return
	}
	x.inUse(&u)
}

// A usage is what a listing has found.
type usage struct {
	counted bool // the server counts TTLs, so each holder has one
	partly  bool // there are more keys

	held, queued int // keys
	longest      store.Info
	foreign      names
	endless      names // held without a TTL
}

// read lists the keys. Its error is one that ended the listing.
func (u *usage) read(ctx context.Context, session store.Session, prefix string) error {
	seen := 0
	for info, err := range session.List(ctx, prefix) {
		switch {
		case err != nil && info.Key == "":
			return err
		case err != nil:
			u.foreign.add(info.Key)
		case !strings.HasPrefix(info.Key, ScratchPrefix):
			u.add(info)
		}
		if seen++; seen == mostKeys {
			u.partly = true
			break
		}
	}
	return nil
}

func (u *usage) add(info store.Info) {
	if info.Held {
		u.held++
	}
	if info.Waiters > 0 {
		u.queued++
	}
	if info.Waiters > u.longest.Waiters {
		u.longest = info
	}
	if info.Held && info.Remaining < 0 && u.counted {
		u.endless.add(info.Key)
	}
}

// inUse reports what a listing has found.
func (x *examination) inUse(u *usage) {
	fact := count(u.held, "key is held", "keys are held")
	if u.partly {
		fact = "at least " + fact
	}
	verdict, fix := OK, ""
	if u.longest.Waiters > 0 {
		fact += fmt.Sprintf(", and %s waited for; the longest queue is that of %s, with %d",
			count(u.queued, "is", "are"), strconv.Quote(u.longest.Key), u.longest.Waiters)
	}
	if u.longest.Waiters > longQueue {
		verdict, fix = Note, "see who holds it: "+command+"why "+quoted(u.longest.Key)
	}
	x.report("locks", verdict, fact, fix)
	if u.foreign.n > 0 {
		x.report("locks", Warn, u.foreign.text()+": what is stored there is not of this library, or was damaged",
			"nobody can lock such a key: find out which program has written there")
	}
	if u.endless.n > 0 {
		x.report("locks", Warn, u.endless.text()+": held without a TTL, so nothing frees it if its holder dies",
			"another program has done that; if its holders are dead, take the keys from them: "+command+"unlock KEY --force --token 0")
	}
}

// names are keys, of which a text has the first few.
type names struct {
	n     int
	first []string
}

func (k *names) add(key string) {
	k.n++
	if len(k.first) < mostNamed {
		k.first = append(k.first, strconv.Quote(key))
	}
}

func (k *names) text() string {
	fact := count(k.n, "key: ", "keys: ") + strings.Join(k.first, ", ")
	if k.n > len(k.first) {
		fact += ", …"
	}
	return fact
}
