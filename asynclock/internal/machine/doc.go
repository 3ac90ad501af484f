// SPDX-License-Identifier: Apache-2.0

// Package machine decides what a client does with one key: when it sends a request, who gets the key,
// and when a lease ends. It is the functional core of package asynclock, which is its shell.
//
// A [Key] is a state machine. Each exported method that takes a [Step] is one step: it gets an input
// and the time, changes the state, and adds to the step what has to be done. The shell carries that
// out before the next step, and sets its alarm to [Key.Due]. The inputs are those of the model in docs/model:
//
//   - Callers: [Key.Arrive], [Key.Leave], [Key.Received], [Key.Unlock], [Key.Check].
//   - Answers of the store: [Key.Answer], [Key.Left], [Key.Renewed], [Key.RenewalIsLate].
//   - Notifications: [Key.Event], [Key.Missed].
//   - The watchdog: [Key.Alarm].
//   - The end of the client: [Key.TurnAway], [Key.Abandon].
//
// The machine knows no session, goroutine, logger, mutex or context. The shell calls it under a mutex.
// A [Host] gives the machine what it can't make itself, such as a secret.
//
// Why methods, and not one Step with a value for the input: the compiler then checks what belongs to
// each input, and an input needs no memory.
//
// Where to look: attempt.go and answer.go for waiting, W1 to W10 of docs/design.md; trouble.go for a
// store that fails; try.go for those who never wait, T1 to T4; choose.go, lie.go and idle.go for futures, F1 to F6; event.go for notifications; holding.go and lease.go for what is held; renew.go;
// tenure.go for what several leases share, with readers.go and permits.go; next.go for what happens to a key whose lease has ended, with cohort.go and retain.go; timing.go and
// schedule.go for all times that follow from the TTL.
package machine
