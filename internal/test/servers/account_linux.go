// SPDX-License-Identifier: Apache-2.0

package servers

import (
	"fmt"
	"os"
	"os/user"
	"strconv"
	"syscall"
)

// An account is who servers run as: we, unless we are root.
type account struct{ credential *syscall.Credential }

// findAccount returns the first of these that exists here.
func findAccount(names ...string) (account, error) {
	if os.Geteuid() != 0 {
		return account{}, nil
	}
	for _, name := range names {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.ParseUint(u.Uid, 10, 32)
		if err != nil {
			return account{}, err
		}
		gid, err := strconv.ParseUint(u.Gid, 10, 32)
		return account{&syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}, err
	}
	return account{}, fmt.Errorf("there is none of the users %q to run databases as", names)
}

// own gives a directory to the user.
func (u account) own(dir string) error {
	if u.credential == nil {
		return nil
	}
	return os.Chown(dir, int(u.credential.Uid), int(u.credential.Gid))
}

// run makes a process the user's.
func (u account) run(attr *syscall.SysProcAttr) { attr.Credential = u.credential }
