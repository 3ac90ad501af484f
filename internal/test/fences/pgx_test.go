// SPDX-License-Identifier: Apache-2.0

package fences

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/asynclock/asynclock-go/fence"
	"github.com/asynclock/asynclock-go/fence/fencepgx"
)

func init() {
	kinds["fencepgx"] = kind{
		prepare: kindOf("postgres").prepare,
		open: func(ctx context.Context, place string) (resource, error) {
			prefix, source, _ := strings.Cut(place, " ")
			fences, err := fencepgx.New(fencepgx.WithTable(prefix + "fence"))
			if err != nil {
				return resource{}, err
			}
			pool, err := pgxpool.New(ctx, source)
			if err != nil {
				return resource{}, err
			}
			return resource{
				write: func(ctx context.Context, h fence.Holder, value string) error {
					return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
						if err := fences.Guard(ctx, tx, h); err != nil {
							return err
						}
						_, err := tx.Exec(ctx, "UPDATE "+prefix+"data SET value = $1", value)
						return err
					})
				},
				read: func(ctx context.Context) (value string, err error) {
					err = pool.QueryRow(ctx, "SELECT value FROM "+prefix+"data").Scan(&value)
					return value, err
				},
				close: pool.Close,
			}, nil
		},
	}
}
