// SPDX-License-Identifier: Apache-2.0

package recipes

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"go.uber.org/goleak"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/store/memstore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// with runs a recipe with a client, and prints the recipe's error.
func with(recipe func(ctx context.Context, locks *asynclock.Client) error) {
	ctx := context.Background()
	locks, err := asynclock.New(memstore.New())
	if err == nil {
		err = errors.Join(recipe(ctx, locks), locks.Close(ctx))
	}
	if err != nil {
		fmt.Println(err)
	}
}
