// SPDX-License-Identifier: Apache-2.0

package zkstore

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/asynclock/asynclock-go/store"
)

// checkServers says what is wrong with the addresses of servers.
func checkServers(servers []string) error {
	if len(servers) == 0 {
		return fmt.Errorf("%w: no servers", store.ErrBadOption)
	}
	for _, server := range zk.FormatServers(servers) {
		if strings.Contains(server, "/") {
			return fmt.Errorf("%w: server %q has a path, which belongs into zkstore.WithRoot", store.ErrBadOption, server)
		}
		host, port, err := net.SplitHostPort(server)
		if err != nil {
			return fmt.Errorf("%w: server: %w", store.ErrBadOption, err)
		}
		if _, err := strconv.ParseUint(port, 10, 16); err != nil || host == "" || strings.Contains(host, ",") {
			return fmt.Errorf("%w: server %q is no host:port", store.ErrBadOption, server)
		}
	}
	return nil
}

// Hosts are the servers for the client library to try, one after the other, by the
// names that they were given: what a name stands for is looked up for each
// connection, since it may change, and certificates are for names.
type hosts struct {
	mu      sync.Mutex
	servers []string
	present int
	last    int // the one that was connected last, or the first
	// disowned: the present server is there, but has ended our session.
	disowned bool
	// excused: that was so since one was connected, and counts no more than once. Servers
	// that disown every session would be asked without end.
	excused bool
}

var _ zk.HostProvider = (*hosts)(nil)

// Init takes the servers, which the library has brought into an order of its own.
func (h *hosts) Init(servers []string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.servers, h.present, h.last = servers, -1, -1
	return nil
}

// Len is how many there are.
func (h *hosts) Len() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.servers)
}

// Next is the server to be tried now, and whether all the others have been since one
// was connected: then the library pauses for a second. It does not before it asks for
// a new session, which takes waiters long enough as it is.
func (h *hosts) Next() (server string, pause bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.present = (h.present + 1) % len(h.servers)
	pause = h.present == h.last && !h.disowned
	h.last, h.disowned = max(h.last, 0), false
	return h.servers[h.present], pause
}

// Connected is called when the present server has accepted the session.
func (h *hosts) Connected() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.last, h.excused = h.present, false
}

// disown is called when the present server has answered that the session is over.
func (h *hosts) disown() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.disowned, h.excused = !h.excused, true
}
