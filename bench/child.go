// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
)

// again returns this program once more, not yet started, in a part that it plays for a peer: see
// runChild. The world's dial is not passed on.
func again(ctx context.Context, part string, p peer, w world, keys int) (*exec.Cmd, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, program, "-child", part, "-peer", p.name,
		"-redis", w.redis, "-etcd", w.etcd, "-ttl", w.ttl.String(), "-keys", strconv.Itoa(keys), "-short="+strconv.FormatBool(w.short))
	cmd.Stderr = os.Stderr
	return cmd, nil
}

// startAgain starts this program again as a process to speak with.
func startAgain(ctx context.Context, part string, p peer, w world) (process *exec.Cmd, in io.WriteCloser, out io.Reader, err error) {
	if process, err = again(ctx, part, p, w, 0); err != nil {
		return nil, nil, nil, err
	}
	if in, err = process.StdinPipe(); err != nil {
		return nil, nil, nil, err
	}
	if out, err = process.StdoutPipe(); err != nil {
		return nil, nil, nil, err
	}
	return process, in, out, process.Start()
}

// runChild runs this program as a process that another instance of it has started.
func runChild(ctx context.Context, f flags) error {
	w := world{redis: f.redis, etcd: f.etcd, ttl: f.ttl, short: f.short}
	i := slices.IndexFunc(peers(w), func(p peer) bool { return p.name == f.peer })
	if i < 0 {
		return fmt.Errorf("no peer %q", f.peer)
	}
	p := peers(w)[i]
	switch f.child {
	case "taker":
		return take(ctx, w, p)
	case "keeper":
		return keep(ctx, p, w, f.keys)
	case "orders":
		return takeOrders(ctx, w, p)
	case "renewer":
		return renew(ctx, w, f.keys)
	}
	return fmt.Errorf("no child %q", f.child)
}
