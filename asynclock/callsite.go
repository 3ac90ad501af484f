// SPDX-License-Identifier: Apache-2.0

package asynclock

import (
	"fmt"
	"runtime"
	"strings"
)

// callerOutside returns file and line of the innermost call that is not of this package.
func callerOutside() string {
	var callers [32]uintptr
	frames := runtime.CallersFrames(callers[:runtime.Callers(2, callers[:])])
	for {
		frame, more := frames.Next()
		if !more || !isOurs(frame.Function) {
			return fmt.Sprintf("%s:%d", frame.File, frame.Line)
		}
	}
}

// isOurs reports whether a function is of this package or of the runtime.
func isOurs(function string) bool {
	return strings.HasPrefix(function, "runtime.") || strings.HasPrefix(function, "github.com/asynclock/asynclock-go/asynclock.")
}
