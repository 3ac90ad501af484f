// SPDX-License-Identifier: Apache-2.0

package asynclock

import (
	"fmt"
	"runtime"
	"strings"
)

// callers returns where its caller was called from.
func callers() []uintptr {
	pcs := make([]uintptr, 16)
	return pcs[:runtime.Callers(2, pcs)]
}

// siteOf returns file and line of the innermost call that is not of this package.
func siteOf(callers []uintptr) string {
	frames := runtime.CallersFrames(callers)
	for {
		frame, more := frames.Next()
		if !more || !isOurs(frame.Function) {
			return fmt.Sprintf("%s:%d", frame.File, frame.Line)
		}
	}
}

// isOurs reports whether a function is of this package or of the runtime.
func isOurs(function string) bool {
	return strings.HasPrefix(function, "github.com/asynclock/asynclock-go/asynclock.") || strings.HasPrefix(function, "runtime.")
}
