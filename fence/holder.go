// SPDX-License-Identifier: Apache-2.0

package fence

import "encoding/json"

// A Holder is who wants to write: the key that it holds, and its fencing token. A lease
// (asynclock.Lease) is one as it stands. A [Stamp] is one that came over a wire.
type Holder interface {
	Key() string
	Token() int64
}

// A Stamp is a key and a token that travel without their lease: in a message, in the row of a job,
// in a header. As JSON it is {"key":"order:42","token":"1795360368123456"}; the token is text, because not every parser
// has 64 bits. The zero Stamp is refused everywhere.
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

// A wire is a Stamp as JSON.
type wire struct {
	Key   string `json:"key"`
	Token int64  `json:"token,string"`
}

// MarshalJSON implements [json.Marshaler]. Its errors are those of [Check]: the zero Stamp has no JSON.
func (s Stamp) MarshalJSON() ([]byte, error) {
	if err := Check(s); err != nil {
		return nil, err
	}
	return json.Marshal(wire{s.key, s.token})
}

// UnmarshalJSON implements [json.Unmarshaler]. Its errors are those of [NewStamp], and of JSON that is no Stamp.
func (s *Stamp) UnmarshalJSON(text []byte) error {
	var w wire
	if err := json.Unmarshal(text, &w); err != nil {
		return err
	}
	read, err := NewStamp(w.Key, w.Token)
	if err != nil {
		return err
	}
	*s = read
	return nil
}
