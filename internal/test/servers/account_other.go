// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package servers

import "syscall"

// An account is who servers run as. Elsewhere nobody tests as root.
type account struct{}

func findAccount(...string) (account, error) { return account{}, nil }

// own gives a directory to the account.
func (account) own(string) error { return nil }

// run makes a process the account's.
func (account) run(*syscall.SysProcAttr) {}
