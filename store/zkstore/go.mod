module github.com/asynclock/asynclock-go/store/zkstore

go 1.25.0

replace github.com/asynclock/asynclock-go => ../..

require (
	github.com/asynclock/asynclock-go v0.0.0
	github.com/go-zookeeper/zk v1.0.4
	github.com/google/uuid v1.6.0
)

require (
	github.com/alicebob/miniredis/v2 v2.40.0 // indirect
	github.com/redis/rueidis v1.0.79 // indirect
	github.com/yuin/gopher-lua v1.1.1 // indirect
	go.uber.org/goleak v1.3.0 // indirect
	golang.org/x/sys v0.47.0 // indirect
)
