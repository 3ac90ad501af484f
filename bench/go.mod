module github.com/asynclock/asynclock-go/bench

go 1.25.0

require (
	github.com/asynclock/asynclock-go v0.0.0
	github.com/go-zookeeper/zk v1.0.4
	github.com/google/uuid v1.6.0
	github.com/redis/rueidis v1.0.79
)

require golang.org/x/sys v0.47.0 // indirect

replace github.com/asynclock/asynclock-go => ../
