// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package main

import (
	"errors"
	"os"
)

// lockFile fails on this system.
func lockFile(*os.File) error { return errors.ErrUnsupported }
