package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/pprof"
	"slices"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/store/quorumstore"
	"github.com/asynclock/asynclock-go/store/redisstore"
)

func main() {
	var nodes []quorumstore.Node
	for i := range 3 {
		port := fmt.Sprint(27000 + i)
		cmd := exec.Command("redis-server", "--port", port, "--save", "", "--appendonly", "no")
		cmd.Start()
		defer cmd.Process.Kill()
		time.Sleep(300 * time.Millisecond)
		s, err := redisstore.OpenURL("redis://127.0.0.1:"+port, redisstore.WithFailoverGrace(100*time.Millisecond))
		if err != nil {
			panic(err)
		}
		nodes = append(nodes, quorumstore.Node{Name: port, Store: s})
	}
	q, _ := quorumstore.New(nodes...)
	time.Sleep(3 * time.Second)
	c, _ := asynclock.New(q)
	ctx := context.Background()
	run := func(n int) (all []time.Duration) {
		for i := range n {
			t := time.Now()
			l, err := c.Lock(ctx, fmt.Sprint("key", i%64))
			if err != nil {
				panic(err)
			}
			if err := l.Unlock(ctx); err != nil {
				panic(err)
			}
			all = append(all, time.Since(t))
		}
		slices.Sort(all)
		return all
	}
	run(2000)
	f, _ := os.Create("/tmp/q.prof")
	var m, m2 runtime.MemStats
	runtime.ReadMemStats(&m)
	pprof.StartCPUProfile(f)
	for range 5 {
		a := run(3000)
		fmt.Println(a[len(a)/2], a[len(a)*9/10])
	}
	pprof.StopCPUProfile()
	runtime.ReadMemStats(&m2)
	fmt.Println("allocs/pair", float64(m2.Mallocs-m.Mallocs)/15000, "bytes", float64(m2.TotalAlloc-m.TotalAlloc)/15000)
}
