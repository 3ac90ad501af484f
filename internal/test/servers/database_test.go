// SPDX-License-Identifier: Apache-2.0

package servers

import (
	"errors"
	"os"
	"testing"

	"github.com/asynclock/asynclock-go/internal/test/kit"
)

func TestADatabaseComesAndGoes(t *testing.T) {
	t.Parallel()
	for _, k := range Databases {
		t.Run(k.Name, func(t *testing.T) {
			t.Parallel()
			if _, err := k.Find(); err != nil {
				kit.Skip(t, k.Name+" is missing: "+err.Error())
			}
			d, err := k.Start(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(d.Close)
			if err := d.Create(t.Context(), "shop"); err != nil {
				t.Errorf("Create: got %v, want no error", err)
			}
			d.Kill()
			if err := d.Restart(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := d.Create(t.Context(), "shop"); err == nil {
				t.Error("Create again after the restart: got no error, want that it is there")
			}
			d.Close()
			if _, err := os.Stat(d.Dir); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("%s after Close: got %v, want it removed", d.Dir, err)
			}
		})
	}
}
