// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"testing"
	"time"
)

// FuzzWaitLimit: what --wait takes is for ever or some time from now on, and what
// it prints it takes again.
func FuzzWaitLimit(f *testing.F) {
	for _, text := range []string{"forever", "0", "500ms", "10m", "-1s", "1h2m3.5s", "9223372036854775807ns", "", "1", "∞"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		w := waitLimit(42)
		if err := w.Set(text); err != nil {
			if w != 42 {
				t.Errorf("%q: refused with %v, and set all the same to %v", text, err, time.Duration(w))
			}
			return
		}
		if w != forever && w < 0 {
			t.Fatalf("%q: got %v, want a time from now on", text, time.Duration(w))
		}
		var again waitLimit
		if err := again.Set(w.String()); err != nil || again != w {
			t.Errorf("%q: printed as %q and read as %v, %v", text, w.String(), again, err)
		}
	})
}

// FuzzServer: a URL is one of a server, or an error that does not quote it.
func FuzzServer(f *testing.F) {
	for _, url := range []string{
		"redis://user:password@host:6379/0", "rediss://host", "redis://host1:26379?addr=host2:26379&master_set=main",
		"unix:///run/redis/redis.sock", "redis://:p%zz@host", "redis://host:port/x", "redis://[::1", "host:6379", "redis://h?db=x", "://",
	} {
		f.Add(url)
	}
	_, bad := (&app{url: "://"}).server()
	f.Fuzz(func(t *testing.T, url string) {
		if url == "" {
			return // then it comes from the environment
		}
		option, err := (&app{url: url}).server()
		switch {
		case err != nil && err.Error() != bad.Error():
			t.Errorf("%q: got %v, want the words for any bad URL", url, err)
		case err == nil && len(option.InitAddress) == 0:
			t.Errorf("%q: got no address and no error", url)
		}
	})
}
