// SPDX-License-Identifier: Apache-2.0

package sqlfence

import (
	"fmt"
	"strings"
)

// Name returns a key as it is stored in databases. Control characters and `% " \` are
// percent-encoded. No two keys have the same name, and a prefix of a key has a prefix of its name.
func Name(key string) string {
	var b strings.Builder
	for i := range len(key) {
		if c := key[i]; c < ' ' || c == 0x7f || c == '%' || c == '"' || c == '\\' {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}
