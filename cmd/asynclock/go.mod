module github.com/asynclock/asynclock-go/cmd/asynclock

go 1.25.0

replace github.com/asynclock/asynclock-go => ../..

require (
	github.com/alicebob/miniredis/v2 v2.40.0
	github.com/asynclock/asynclock-go v0.0.0
	github.com/redis/rueidis v1.0.79
	github.com/spf13/cobra v1.10.2
	github.com/spf13/pflag v1.0.9
	go.uber.org/goleak v1.3.0
	golang.org/x/sys v0.47.0
	golang.org/x/term v0.38.0
)

require (
	github.com/dunglas/httpsfv v1.1.2 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/inconshreveable/mousetrap v1.1.0 // indirect
	github.com/yuin/gopher-lua v1.1.1 // indirect
)
