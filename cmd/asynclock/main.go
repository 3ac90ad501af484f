// SPDX-License-Identifier: Apache-2.0

// Command asynclock runs programs under a distributed lock, and shows and opens locks. Its manual
// is --help.
package main

import (
	"context"
	"os"

	"github.com/asynclock/asynclock-go/cmd/asynclock/internal/cli"
)

func main() {
	os.Exit(cli.Run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
