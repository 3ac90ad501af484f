// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"errors"
	"net"
	"os"
	"testing"
	"time"
)

// parrot is a server that answers each line with what it is told to.
func parrot(t *testing.T, answers map[string]string) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() { // ends with the listener
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() { // ends with the connection
				defer conn.Close()
				for lines := bufio.NewScanner(conn); lines.Scan(); {
					if _, err := conn.Write([]byte(answers[lines.Text()])); err != nil {
						return
					}
				}
			}()
		}
	}()
	return l.Addr().String()
}

const message = ">3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nx\r\n"

// A visitor talks to the parrot through a proxy.
type visitor struct {
	t    *testing.T
	conn net.Conn
}

func visit(t *testing.T) (*proxy, visitor) {
	t.Helper()
	p, err := startProxy()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.close)
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", p.addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	v := visitor{t, conn}
	v.says(parrot(t, map[string]string{"ping": "+PONG\r\n", "both": message + "+PONG\r\n"}))
	return p, v
}

func (v visitor) says(line string) {
	v.t.Helper()
	if _, err := v.conn.Write([]byte(line + "\n")); err != nil {
		v.t.Fatal(err)
	}
}

func (v visitor) hears(want string) {
	v.t.Helper()
	got := make([]byte, len(want))
	if err := v.conn.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		v.t.Fatal(err)
	}
	for n := 0; n < len(want); {
		m, err := v.conn.Read(got[n:])
		if err != nil {
			v.t.Fatalf("after %q: %v", got[:n], err)
		}
		n += m
	}
	if string(got) != want {
		v.t.Errorf("got %q, want %q", got, want)
	}
}

// hearsTheEnd: the connection ends, and nothing comes before that.
func (v visitor) hearsTheEnd() {
	v.t.Helper()
	if err := v.conn.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		v.t.Fatal(err)
	}
	if n, err := v.conn.Read(make([]byte, 1)); n > 0 || err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		v.t.Errorf("got %d bytes, %v, want the end of the connection", n, err)
	}
}

func TestFairWeather(t *testing.T) {
	t.Parallel()
	_, v := visit(t)
	v.says("both")
	v.hears(message + "+PONG\r\n")
}

func TestMessagesVanish(t *testing.T) {
	t.Parallel()
	p, v := visit(t)
	p.change(func(w *weather) { w.mute = true })
	v.says("both")
	v.hears("+PONG\r\n")
	p.change(func(w *weather) { *w = weather{} })
	v.says("both")
	v.hears(message + "+PONG\r\n")
}

func TestRepliesAreLate(t *testing.T) {
	t.Parallel()
	const late = 100 * time.Millisecond
	for _, c := range []struct {
		name   string
		change func(*weather)
	}{
		{"requests", func(w *weather) { w.up = late }},
		{"replies", func(w *weather) { w.down = late }},
		{"messages", func(w *weather) { w.messages = late }},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, v := visit(t)
			p.change(c.change)
			start := time.Now()
			v.says("both")
			v.hears(message + "+PONG\r\n")
			if took := time.Since(start); took < late {
				t.Errorf("got the answer after %v, want %v at least", took, late)
			}
		})
	}
}

// TestWhatABlackHoleSwallowed is gone, and so is its connection in the end.
func TestWhatABlackHoleSwallowed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		open func(*weather)
	}{
		{"requests", func(w *weather) { w.holeUp = true }},
		{"replies", func(w *weather) { w.holeDown = true }},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, v := visit(t)
			p.change(c.open)
			v.says("ping")
			for p.swallowed() == 0 {
				time.Sleep(time.Millisecond)
			}
			p.change(func(w *weather) { *w = weather{} })
			v.hearsTheEnd()
		})
	}
}

// TestWeatherOfOneServer replaces that of all, until it is fine.
func TestWeatherOfOneServer(t *testing.T) {
	t.Parallel()
	p, v := visit(t)
	p.change(func(w *weather) { w.mute = true })
	p.changeAt("another server", weather{holeUp: true})
	v.says("both")
	v.hears("+PONG\r\n")
	p.changeAt(p.visited(), weather{messages: time.Millisecond})
	v.says("both")
	v.hears(message + "+PONG\r\n")
	p.changeAt(p.visited(), weather{})
	v.says("both")
	v.hears("+PONG\r\n")
	p.changeAt(p.visited(), weather{holeUp: true})
	v.says("ping")
	for p.swallowed() == 0 {
		time.Sleep(time.Millisecond)
	}
	p.changeAt("another server", weather{})
	if p.swallowed() == 0 {
		t.Error("the link is gone, and should be there until the hole closes")
	}
	p.changeAt(p.visited(), weather{})
	v.hearsTheEnd()
}

// visited is the server of the only connection.
func (p *proxy) visited() (addr string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		addr = l.addr
	}
	return addr
}

// swallowed counts the connections that have lost something.
func (p *proxy) swallowed() (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		if l.lossy {
			n++
		}
	}
	return n
}

func TestReplyIsLostAfterTheRequest(t *testing.T) {
	t.Parallel()
	p, v := visit(t)
	p.change(func(w *weather) { w.loseReply = true })
	v.says("ping")
	v.hearsTheEnd()
}

func TestConnectionsAreRefused(t *testing.T) {
	t.Parallel()
	p, v := visit(t)
	v.says("ping")
	v.hears("+PONG\r\n")
	p.change(func(w *weather) { w.refuse = true })
	p.cut()
	v.hearsTheEnd()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", p.addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	visitor{t, conn}.hearsTheEnd()
}

// Bytes may be swallowed when the hole is just being closed. Then the link has lost something all the same.
func TestWhatIsLostAfterTheHoleTearsTheLink(t *testing.T) {
	t.Parallel()
	for name, sky := range map[string]weather{"no hole": {}, "a hole": {holeUp: true}} {
		near, far := net.Pipe()
		p := &proxy{sky: sky}
		p.lose(&link{client: near, server: far})
		_ = far.SetReadDeadline(time.Now())
		_, err := far.Read(make([]byte, 1))
		if torn := !errors.Is(err, os.ErrDeadlineExceeded); torn != (name == "no hole") {
			t.Errorf("%s: got %v", name, err)
		}
		near.Close()
		far.Close()
	}
}
