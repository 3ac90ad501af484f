// SPDX-License-Identifier: Apache-2.0

//go:build unix

package cli

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// isUnread reports whether out is a pipe or a socket whose other end is closed.
func isUnread(out io.Writer) bool {
	file, isFile := out.(*os.File)
	if !isFile {
		return false
	}
	asked := []unix.PollFd{{Fd: int32(file.Fd())}} //nolint:gosec // a descriptor fits
	n, err := unix.Poll(asked, 0)
	return err == nil && n > 0 && asked[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0
}
