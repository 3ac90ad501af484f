module github.com/asynclock/asynclock-go/contrib/gocronlock

go 1.25.0

replace github.com/asynclock/asynclock-go => ../..

require (
	github.com/asynclock/asynclock-go v0.0.0
	github.com/go-co-op/gocron/v2 v2.21.2
	github.com/google/uuid v1.6.0
	go.uber.org/goleak v1.3.0
)

require (
	github.com/jonboulle/clockwork v0.5.0 // indirect
	github.com/robfig/cron/v3 v3.0.1 // indirect
)
