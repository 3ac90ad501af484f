// SPDX-License-Identifier: Apache-2.0

package memstore_test

import (
	"testing"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/store/memstore"
	"github.com/asynclock/asynclock-go/store/storetest"
)

func open(*testing.T) asynclock.Store { return memstore.New() }

func TestConformanceInABubble(t *testing.T) { storetest.Run(t, open, storetest.InBubble()) }

func TestConformanceInRealTime(t *testing.T) { storetest.Run(t, open) }
