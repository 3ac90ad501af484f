// SPDX-License-Identifier: Apache-2.0

package store

import "fmt"

// An OtherHolderError is why [Session.Force] took nothing from anybody: the key is held, and the
// token is not that of its holding. Nothing was changed.
type OtherHolderError struct {
	Info Info // the key, as Inspect would describe it at that moment; Queue may be nil
}

func (e *OtherHolderError) Error() string {
	if e.Info.Token == 0 {
		return "asynclock: the holder is another one, and has no token"
	}
	return fmt.Sprintf("asynclock: the holder is another one, with token %d", e.Info.Token)
}
