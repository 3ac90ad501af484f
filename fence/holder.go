// SPDX-License-Identifier: Apache-2.0

package fence

// A Holder is who wants to write: the key that it holds, and its fencing token. A lease
// (asynclock.Lease) is one as it stands. A [Stamp] is one that came over a wire.
type Holder interface {
	Key() string
	Token() int64
}

// A Stamp is a key and a token that travel without their lease: in a message, in the row of a job,
// in a header. The zero Stamp is refused everywhere.
type Stamp struct {
	key   string
	token int64
}

// NewStamp makes a Stamp. Its errors are those of [Check].
func NewStamp(key string, token int64) (Stamp, error) {
	s := Stamp{key, token}
	if err := Check(s); err != nil {
		return Stamp{}, err
	}
	return s, nil
}

// Key returns the key.
func (s Stamp) Key() string { return s.key }

// Token returns the token.
func (s Stamp) Token() int64 { return s.token }
