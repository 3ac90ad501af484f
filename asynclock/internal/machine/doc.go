// SPDX-License-Identifier: Apache-2.0

// Package machine decides what a client does with one key: when it sends a request, who gets the key,
// and when a lease ends. It is the functional core of package asynclock, which is its shell.
//
// A [Key] is a state machine. Each exported method that takes a [Step] is one step: it gets an input and the time, and
// changes the state. What follows is decided in one place, from the state alone (reconcile.go): who is served or
// admitted, who contends, what is passed on, retained or given back. Each step ends there. The shell carries out what
// the step says before the next one, and sets its alarm to [Key.Due]. The inputs are those of the model in docs/model:
//
//   - Callers: [Key.Arrive], [Key.Join], [Key.Leave], [Key.Received], [Key.Unlock], [Key.Check], [Key.Lasts],
//     [Key.Renew], [Key.BeginDowngrade].
//   - Answers of the store: [Key.Answer], [Key.Left], [Key.Rested], [Key.Renewed], [Key.RenewalIsLate],
//     [Key.EndDowngrade].
//   - Notifications: [Key.Event], [Key.Missed].
//   - The watchdog: [Key.Alarm].
//   - The end of the client, or of a retention: [Key.TurnAway], [Key.Abandon], [Key.ReleaseRetained].
//
// The machine knows no session, goroutine, logger, mutex or context. The shell calls it under a mutex.
// A [Host] gives the machine what it can't make itself, such as a secret.
//
// Why methods, and not one Step with a value for the input: the compiler then checks what belongs to
// each input, and an input needs no memory.
//
// Where to look, from what comes in to what follows:
//
//   - the key, a step, what is asked for: key.go, step.go, queue.go
//   - waiting, W1 to W10 of docs/design.md: waiter.go, attempt.go, answer.go, event.go; trouble.go if the store fails
//   - those who never wait, T1 to T4: try.go, refuse.go, withdraw.go
//   - what is held: stake.go, hold.go, holding.go, lease.go, join.go; renew.go and renewed.go; loss.go
//   - what several leases share: tenure.go, readers.go, permits.go, downgrade.go; mode.go and exclusive.go have what
//     sets kinds of holdings apart
//   - futures, F1 to F6: choose.go, lie.go, moveon.go, idle.go
//   - what follows: reconcile.go; for a key whose lease has ended next.go, cohort.go, retain.go
//   - times that follow from the TTL: timing.go
//   - what the shell counts: way.go
package machine
