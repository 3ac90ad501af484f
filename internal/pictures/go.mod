module github.com/asynclock/asynclock-go/internal/pictures

go 1.25.0

require github.com/creack/pty v1.1.24
