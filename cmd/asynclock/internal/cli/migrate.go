// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"github.com/spf13/cobra"

	"github.com/asynclock/asynclock-go/store/anystore"
)

func (a *app) migrateCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "migrate",
		Short: "Make or update the tables of a database",
		Long: `migrate makes the tables and routines that locks in a database need, or updates
them. It can run at every start, and on several hosts at once: what is as it
should be is left alone. Redis and ZooKeeper have no tables, and there it does
nothing.

To have the statements reviewed, or run by another tool, take them from the
directories store/sqlstore/schema and store/sqlstore/springsql/schema of
github.com/asynclock/asynclock-go.

Programs of a release with other tables get errors from then on; see
docs/stores/sql.md there.
`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			url, err := a.location()
			if err != nil {
				return err
			}
			return a.prefixed(anystore.Migrate(cmd.Context(), url))
		},
	}
}
