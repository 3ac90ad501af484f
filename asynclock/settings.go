// SPDX-License-Identifier: Apache-2.0

package asynclock

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/asynclock/asynclock-go/asynclock/internal/machine"
	"github.com/asynclock/asynclock-go/internal/asynclog"
)

// lockSettings configures one acquisition.
type lockSettings struct {
	machine.Terms

	wait    time.Duration // for the key at most; negative: as long as the context lasts
	reentry bool
	given   given   // by the options of the call itself
	window  uint16  // of LockEach
	class   *string // nil: none
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
	givenWindow
)

func defaultSettings() clientSettings {
	return clientSettings{
		lock: lockSettings{
			Terms: machine.Terms{
				TTL:        DefaultTTL,
				Renew:      true,
				QueueLimit: DefaultQueueLimit,
				Holder:     defaultHolder(),
			},
			wait:   -1,
			window: DefaultWindow,
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

// with returns the settings changed by the options of a call for one lease.
func (s lockSettings) with(options []LockOption) (lockSettings, error) {
	s, err := s.apply(options)
	switch {
	case err != nil:
		return s, err
	case s.given&givenWindow != 0:
		return s, errWindow
	case s.Mode == Shared && s.MinHold > 0:
		return s, fmt.Errorf("%w: a reader has no minimum hold", ErrInvalidOption)
	}
	return s, nil
}

// apply returns the settings changed by the options of a call.
func (s lockSettings) apply(options []LockOption) (lockSettings, error) {
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

// forReaders returns the settings for readers who give no options. A default minimum hold is for writers.
func (s lockSettings) forReaders() lockSettings {
	s.Mode, s.MinHold = Shared, 0
	return s
}
