// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
)

// The files in the directory of pictures.
const (
	castName    = "demo.cast"
	reelName    = "demo.svg"
	handoffName = "handoff.svg"
)

func main() {
	again := flag.Bool("record", false, "run the demo and record it first")
	dir := flag.String("dir", "docs/pictures", "the directory of the recording and the pictures")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := draw(ctx, *dir, *again)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "pictures:", err)
		os.Exit(1)
	}
}

// draw writes all pictures, and the recording if asked to.
func draw(ctx context.Context, dir string, again bool) error {
	if err := os.WriteFile(filepath.Join(dir, handoffName), handoff.svg(), 0o644); err != nil {
		return err
	}
	cast := filepath.Join(dir, castName)
	if again {
		recording, err := record(ctx)
		if err != nil {
			return err
		}
		if err := os.WriteFile(cast, recording.encode(), 0o644); err != nil {
			return err
		}
	}
	recorded, err := os.ReadFile(cast)
	if err != nil {
		return err
	}
	reel, err := animate(ctx, recorded)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, reelName), reel, 0o644)
}
