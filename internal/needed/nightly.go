// SPDX-License-Identifier: Apache-2.0

package needed

import "os"

// Nightly reports whether this is the run of the night, which does what takes too long
// for every day.
func Nightly() bool { return os.Getenv("ASYNCLOCK_NIGHTLY") == "1" }
