module github.com/asynclock/asynclock-go/cmd/asynclock

go 1.25.0

replace (
	github.com/asynclock/asynclock-go => ../..
	github.com/asynclock/asynclock-go/store/anystore => ../../store/anystore
	github.com/asynclock/asynclock-go/store/sqlstore => ../../store/sqlstore
	github.com/asynclock/asynclock-go/store/zkstore => ../../store/zkstore
)

require (
	github.com/alicebob/miniredis/v2 v2.40.0
	github.com/asynclock/asynclock-go v0.0.0
	github.com/asynclock/asynclock-go/store/anystore v0.0.0
	github.com/asynclock/asynclock-go/store/sqlstore v0.0.0
	github.com/google/uuid v1.6.0
	github.com/redis/rueidis v1.0.79
	github.com/spf13/cobra v1.10.2
	go.uber.org/goleak v1.3.0
	golang.org/x/sys v0.47.0
	golang.org/x/term v0.38.0
)

require (
	filippo.io/edwards25519 v1.2.0 // indirect
	github.com/asynclock/asynclock-go/store/zkstore v0.0.0 // indirect
	github.com/dunglas/httpsfv v1.1.2 // indirect
	github.com/go-sql-driver/mysql v1.10.1 // indirect
	github.com/go-zookeeper/zk v1.0.4 // indirect
	github.com/inconshreveable/mousetrap v1.1.0 // indirect
	github.com/jackc/pgpassfile v1.0.0 // indirect
	github.com/jackc/pgservicefile v0.0.0-20240606120523-5a60cdf6a761 // indirect
	github.com/jackc/pgx/v5 v5.13.0 // indirect
	github.com/jackc/puddle/v2 v2.2.3 // indirect
	github.com/spf13/pflag v1.0.9 // indirect
	github.com/yuin/gopher-lua v1.1.1 // indirect
	golang.org/x/sync v0.22.0 // indirect
	golang.org/x/text v0.41.0 // indirect
)
