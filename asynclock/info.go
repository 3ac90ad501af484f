// SPDX-License-Identifier: Apache-2.0

package asynclock

import "github.com/asynclock/asynclock-go/store"

// Info describes a key, as [Client.Inspect] and [Client.List] find it.
type Info = store.Info

// WaiterInfo describes one queued client.
type WaiterInfo = store.WaiterInfo
