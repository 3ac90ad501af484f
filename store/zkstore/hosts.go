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

// checkServers returns the error in the addresses of servers, if any.
func checkServers(servers []string) error {
	if len(servers) == 0 {
		return fmt.Errorf("%w: no servers", store.ErrInvalidOption)
	}
	for _, server := range zk.FormatServers(servers) {
		if strings.Contains(server, "/") {
			return fmt.Errorf("%w: server %q has a path, which belongs into zkstore.WithRoot", store.ErrInvalidOption, server)
		}
		host, port, err := net.SplitHostPort(server)
		if err != nil {
			return fmt.Errorf("%w: server: %w", store.ErrInvalidOption, err)
		}
		if _, err := strconv.ParseUint(port, 10, 16); err != nil || host == "" || strings.Contains(host, ",") {
			return fmt.Errorf("%w: server %q is no host:port", store.ErrInvalidOption, server)
		}
	}
	return nil
}

// hosts are the servers that the client library tries one after the other, by the given names. Each
// connection looks the name up, because its address may change. Certificates are issued for names.
type hosts struct {
	mu      sync.Mutex
	servers []string
	present int
	last    int // the one that was connected last, or the first
	// disowned: the present server is reachable, but has ended our session.
	disowned bool
	// excused: since the last accepted session, a server has already disowned us once. This counts
	// no more than once; otherwise servers that disown every session would be asked without end.
	excused bool
}

var _ zk.HostProvider = (*hosts)(nil)

// Init takes the servers, in the order that the library has chosen.
func (h *hosts) Init(servers []string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.servers, h.present, h.last = servers, -1, -1
	return nil
}

// Len returns the number of servers.
func (h *hosts) Len() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.servers)
}

// Next returns the server to try now. Pause is true if all servers have been tried since the last
// connection, and the library then pauses for a second. There is no pause before the request for a
// new session, because waiters have waited long enough by then.
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
