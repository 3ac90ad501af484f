// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"io"
	"net"
	"strings"
	"sync"
	"time"
)

// Weather is what a proxy does to what passes it. The zero weather is fine.
type weather struct {
	up, down time.Duration // how much later requests and replies arrive
	messages time.Duration // likewise those of pub-sub

	// A black hole swallows bytes: they never arrive, and neither end is notified. When the
	// hole closes, so do the connections that have lost something.
	holeUp, holeDown bool
	mute             bool // messages of pub-sub vanish, and nothing else

	refuse    bool // no new connections
	loseReply bool // a request goes through, and the connection ends before its reply
}

// A proxy stands between one worker and all servers. The first line of each
// connection names the server.
type proxy struct {
	listener net.Listener
	dialer   net.Dialer

	mu    sync.Mutex
	sky   weather
	local map[string]weather // on the way to these servers, instead
	links map[*link]struct{}

	running sync.WaitGroup
}

// A link is one connection through a proxy.
type link struct {
	addr           string // of the server
	client, server net.Conn
	requests       io.Reader // of the client
	lossy          bool      // something of it was swallowed
}

func (l *link) close() {
	_ = l.client.Close()
	_ = l.server.Close()
}

// startProxy starts one. Close ends it.
func startProxy() (*proxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &proxy{listener: listener, dialer: net.Dialer{Timeout: time.Second}, links: make(map[*link]struct{}), local: make(map[string]weather)}
	p.running.Go(p.accept) // ends with the listener
	return p, nil
}

func (p *proxy) addr() string { return p.listener.Addr().String() }

func (p *proxy) close() {
	_ = p.listener.Close()
	p.cut()
	p.running.Wait()
}

// change changes the weather.
func (p *proxy) change(f func(*weather)) { p.turn(func() { f(&p.sky) }) }

// changeAt gives the way to a server a weather of its own, until it is told that it is fine.
func (p *proxy) changeAt(addr string, w weather) {
	p.turn(func() {
		if p.local[addr] = w; w == (weather{}) {
			delete(p.local, addr)
		}
	})
}

// turn changes weathers, and closes the links that have lost something and now pass what comes.
func (p *proxy) turn(f func()) {
	p.mu.Lock()
	f()
	var torn []*link
	for l := range p.links {
		if sky := p.skyOf(l); l.lossy && !sky.holeUp && !sky.holeDown {
			torn = append(torn, l)
		}
	}
	p.mu.Unlock()
	for _, l := range torn {
		l.close()
	}
}

// cut ends all connections.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.close()
	}
}

// skyOf is the weather of a link. The mutex is held.
func (p *proxy) skyOf(l *link) weather {
	if w, ok := p.local[l.addr]; ok {
		return w
	}
	return p.sky
}

func (p *proxy) over(l *link) weather {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.skyOf(l)
}

func (p *proxy) weather() weather {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.sky
}

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		if p.weather().refuse {
			_ = client.Close()
			continue
		}
		p.running.Go(func() { // ends with either connection
			if l := p.connect(client); l != nil {
				defer p.forget(l)
				p.carry(l)
			}
		})
	}
}

// connect connects a client to the server it wants. It returns nil if that
// can't be done.
func (p *proxy) connect(client net.Conn) *link {
	from := bufio.NewReader(client)
	_ = client.SetReadDeadline(time.Now().Add(p.dialer.Timeout))
	addr, err := from.ReadString('\n')
	if err == nil {
		err = client.SetReadDeadline(time.Time{})
	}
	if err == nil {
		var server net.Conn
		if server, err = p.dialer.DialContext(context.Background(), "tcp", strings.TrimSpace(addr)); err == nil {
			l := &link{addr: strings.TrimSpace(addr), client: client, requests: from, server: server}
			p.mu.Lock()
			defer p.mu.Unlock()
			p.links[l] = struct{}{}
			return l
		}
	}
	_ = client.Close()
	return nil
}

func (p *proxy) forget(l *link) {
	l.close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.links, l)
}

// carry passes on what comes in both directions, until either ends.
func (p *proxy) carry(l *link) {
	up, down := make(chan parcel, 1024), make(chan parcel, 1024)
	var carriers sync.WaitGroup
	for _, job := range []func(){
		func() { defer close(up); p.takeRequests(l, up) },
		func() { defer close(down); p.takeReplies(l, down) },
		func() { deliver(l, l.server, up) },
		func() { deliver(l, l.client, down) },
	} {
		carriers.Go(job) // each ends when a connection is closed, and closes both
	}
	carriers.Wait()
}

// A parcel is data and when they are to arrive.
type parcel struct {
	data []byte
	due  time.Time
}

// deliver hands parcels over in order, each at its time or after.
func deliver(l *link, to io.Writer, parcels <-chan parcel) {
	defer func() {
		for range parcels { // the sender must not wait for nobody
		}
	}()
	defer l.close()
	for p := range parcels {
		time.Sleep(time.Until(p.due))
		if _, err := to.Write(p.data); err != nil {
			return
		}
	}
}

func (p *proxy) takeRequests(l *link, out chan<- parcel) {
	for {
		data := make([]byte, 16<<10)
		n, err := l.requests.Read(data)
		if err != nil {
			return
		}
		sky := p.over(l)
		if sky.holeUp {
			p.lose(l)
			continue
		}
		out <- parcel{data[:n], time.Now().Add(sky.up)}
	}
}

func (p *proxy) takeReplies(l *link, out chan<- parcel) {
	in := bufio.NewReader(l.server)
	for {
		frame, err := readFrame(in)
		if err != nil {
			l.close() // also if the stream makes no sense
			return
		}
		sky := p.over(l)
		late := sky.down
		message := isMessage(frame)
		switch {
		case sky.loseReply && !message:
			l.close()
			return
		case sky.holeDown:
			p.lose(l)
			continue
		case message && sky.mute:
			continue
		case message:
			late = max(late, sky.messages)
		}
		out <- parcel{frame, time.Now().Add(late)}
	}
}

// lose notes that bytes of a link were swallowed. If the hole has closed meanwhile, nobody else will close the link.
func (p *proxy) lose(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l.lossy = true
	if sky := p.skyOf(l); !sky.holeUp && !sky.holeDown {
		l.close()
	}
}
