// SPDX-License-Identifier: Apache-2.0

package kit

import "os"

// Nightly reports whether ASYNCLOCK_NIGHTLY=1 asks for the tests that take too long for
// every day: more releases of what there is already a newest and an oldest of. A test
// has them in its table or not, and skips none.
func Nightly() bool { return os.Getenv("ASYNCLOCK_NIGHTLY") == "1" }
