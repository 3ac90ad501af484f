// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
)

// A slowReader takes nothing until it may.
type slowReader struct {
	may  chan struct{}
	text strings.Builder
}

func (r *slowReader) Write(text []byte) (int, error) {
	<-r.may
	return r.text.Write(text)
}

// TestMessages: whoever says something goes on at once; what is said is written in
// order, the newest in any case, by the end of flush.
func TestMessages(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		reader := &slowReader{may: make(chan struct{})}
		m := &messages{out: reader}
		m.flush() // of nothing
		fmt.Fprint(m, "first ")
		synctest.Wait() // it is being written, the others queue
		for i := range maxMessages + 2 {
			fmt.Fprint(m, i, " ")
		}
		close(reader.may)
		m.flush()
		got := strings.Fields(reader.text.String())
		if len(got) != 1+maxMessages || got[0] != "first" || got[1] != "2" || got[maxMessages] != fmt.Sprint(maxMessages+1) {
			t.Errorf("got %d messages, %.40q..., want the first and the last %d", len(got), got, maxMessages)
		}
		fmt.Fprint(m, "again")
		m.flush()
		if !strings.HasSuffix(reader.text.String(), " again") {
			t.Error("nothing is written after a flush")
		}
	})
}
