module github.com/asynclock/asynclock-go/internal/test/chaos

go 1.26.0

replace (
	github.com/asynclock/asynclock-go => ../../..
	github.com/asynclock/asynclock-go/fence/fencepgx => ../../../fence/fencepgx
	github.com/asynclock/asynclock-go/store/goredisstore => ../../../store/goredisstore
)

require (
	github.com/alicebob/miniredis/v2 v2.40.0
	github.com/anishathalye/porcupine v1.3.1
	github.com/asynclock/asynclock-go v0.0.0
	github.com/asynclock/asynclock-go/fence/fencepgx v0.0.0
	github.com/asynclock/asynclock-go/store/goredisstore v0.0.0
	github.com/jackc/pgx/v5 v5.13.0
	github.com/redis/go-redis/v9 v9.23.0
	github.com/redis/rueidis v1.0.79
	go.uber.org/goleak v1.3.0
	golang.org/x/sys v0.50.0
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/jackc/pgpassfile v1.0.0 // indirect
	github.com/jackc/pgservicefile v0.0.0-20240606120523-5a60cdf6a761 // indirect
	github.com/jackc/puddle/v2 v2.2.3 // indirect
	github.com/yuin/gopher-lua v1.1.1 // indirect
	go.uber.org/atomic v1.12.0 // indirect
	golang.org/x/sync v0.22.0 // indirect
	golang.org/x/text v0.41.0 // indirect
)
