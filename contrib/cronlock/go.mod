module github.com/asynclock/asynclock-go/contrib/cronlock

go 1.25.0

replace github.com/asynclock/asynclock-go => ../..

require (
	github.com/asynclock/asynclock-go v0.0.0
	github.com/robfig/cron/v3 v3.0.1
	go.uber.org/goleak v1.3.0
)

require github.com/google/uuid v1.6.0 // indirect
