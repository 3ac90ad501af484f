// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"os/user"
	"strconv"
	"syscall"
)

// A dbUser is who database servers run as: we, unless we are root.
type dbUser struct{ credential *syscall.Credential }

// findUser returns the first of these that exists here.
func findUser(names ...string) (dbUser, error) {
	if os.Geteuid() != 0 {
		return dbUser{}, nil
	}
	for _, name := range names {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.ParseUint(u.Uid, 10, 32)
		if err != nil {
			return dbUser{}, err
		}
		gid, err := strconv.ParseUint(u.Gid, 10, 32)
		return dbUser{&syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}, err
	}
	return dbUser{}, fmt.Errorf("there is none of the users %q to run databases as", names)
}

// own gives a directory to the user.
func (u dbUser) own(dir string) error {
	if u.credential == nil {
		return nil
	}
	return os.Chown(dir, int(u.credential.Uid), int(u.credential.Gid))
}

// run makes a process the user's.
func (u dbUser) run(attr *syscall.SysProcAttr) *syscall.SysProcAttr {
	attr.Credential = u.credential
	return attr
}
