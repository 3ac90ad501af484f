// SPDX-License-Identifier: Apache-2.0

package history

import "time"

// A Time is in nanoseconds since the machine started, or a span of that many.
type Time int64

// Span converts a duration.
func Span(d time.Duration) Time { return Time(d) }

// Duration converts a span.
func (t Time) Duration() time.Duration { return time.Duration(t) }

// String prints it in seconds.
func (t Time) String() string {
	return time.Duration(t).Round(100 * time.Microsecond).String()
}

// Origin returns when the clock of these times stood at 0, in ns since 1970.
func Origin() int64 { return time.Now().UnixNano() - int64(Now()) }
