// SPDX-License-Identifier: Apache-2.0

package springsql

import (
	"testing"

	"github.com/asynclock/asynclock-go/internal/test/kit"
)

func TestWithoutALoggerWarningsGoToTheDefault(t *testing.T) {
	kit.LogOptions(t, WithLogger, WithoutLogger, func(_ *testing.T, options []Option) error {
		s, err := newSettings(options)
		kit.Warn(s.log())
		return err
	})
}
