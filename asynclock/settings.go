// SPDX-License-Identifier: Apache-2.0

package asynclock

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/asynclock/asynclock-go/internal/asynclog"
)

// lockSettings configures one acquisition.
type lockSettings struct {
	terms

	wait    time.Duration // for the key at most; negative: as long as the context lasts
	reentry bool
	given   given // by the options of the call itself
}

// terms are what the store is asked for. They are comparable, because a lease passes from waiter to
// waiter inside a client only between equal terms.
type terms struct {
	ttl        time.Duration
	maxHold    time.Duration // 0: no bound
	minHold    time.Duration
	retention  time.Duration // 0: none
	renew      bool
	queueLimit int
	holder     string
}

// given says which options a call has. Options that need not be told apart from the client's default
// are left out.
type given uint8

const (
	givenTTL given = 1 << iota
	givenMaxHold
	givenMinHold
	givenRetention
	givenRenewal
	givenDescription
	givenWait
)

func defaultSettings() clientSettings {
	return clientSettings{
		lock: lockSettings{
			terms: terms{
				ttl:        DefaultTTL,
				renew:      true,
				queueLimit: DefaultQueueLimit,
				holder:     defaultHolder(),
			},
			wait:    -1,
			reentry: true,
		},
		log: asynclog.Default,
	}
}

// defaultHolder describes where to find the holder: program, host and process.
func defaultHolder() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown-host"
	}
	text := fmt.Sprintf("%s@%s pid %d", filepath.Base(os.Args[0]), host, os.Getpid())
	if checkHolder(text) != nil { // a host or program name from another world
		return fmt.Sprintf("pid %d", os.Getpid())
	}
	return text
}

// with returns the settings changed by the options of a call.
func (s lockSettings) with(options []LockOption) (lockSettings, error) {
	s.given = 0
	for _, o := range options {
		if o == nil {
			return s, fmt.Errorf("%w: nil option", ErrInvalidOption)
		}
		if err := o.applyLock(&s); err != nil {
			return s, err
		}
	}
	return s, nil
}
