// SPDX-License-Identifier: Apache-2.0

package check

// checkWholes: a lease over several keys is trusted only while each of its parts is. Nothing excuses
// another answer, because one client gives both. That nobody else has a part's key meanwhile, the rule
// of overlaps says: the part counts as trusted for as long as the whole is.
func (c *checker) checkWholes(k *key) {
	for _, l := range k.leases {
		if l.lapsed != 0 && l.valid > l.lapsed {
			c.violate("whole", k.name, "%s was still trusted at %v, when its part %s had been over at %v", l.whole, l.valid, l.op, l.lapsed)
		}
	}
}
