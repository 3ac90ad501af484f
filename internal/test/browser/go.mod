module github.com/asynclock/asynclock-go/internal/test/browser

go 1.26.0

replace github.com/asynclock/asynclock-go => ../../..

require (
	github.com/asynclock/asynclock-go v0.0.0
	github.com/chromedp/cdproto v0.159.0
	github.com/chromedp/chromedp v0.23.0
	go.uber.org/goleak v1.3.0
)

require (
	github.com/go-json-experiment/json v0.0.0-20260213210345-44df1a37e875 // indirect
	github.com/google/uuid v1.6.0 // indirect
)
