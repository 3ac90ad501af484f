// SPDX-License-Identifier: Apache-2.0

package fencehttp

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/dunglas/httpsfv"

	"github.com/asynclock/asynclock-go/fence"
)

// Header is the name of the header.
const Header = "Fencing-Token"

// maxHeaderLen is longer than any header of ours: each byte of a key takes at most three.
const maxHeaderLen = 2048

// Parse and [Err] return these errors. Test with [errors.Is].
var (
	// ErrMissing: the request has no token. The answer is 428 Precondition Required.
	ErrMissing = errors.New("fencehttp: no fencing token")
	// ErrMalformed: what the header has is no key and token. The answer is 400 Bad Request.
	ErrMalformed = errors.New("fencehttp: malformed fencing token")
)

// Format returns the value of the header for a holder. Its errors are those of [fence.Check].
func Format(h fence.Holder) (string, error) {
	if err := fence.Check(h); err != nil {
		return "", err
	}
	var item httpsfv.Item
	if key := h.Key(); isPrintable(key) {
		item = httpsfv.NewItem(key)
	} else {
		item = httpsfv.NewItem(httpsfv.DisplayString(key))
	}
	item.Params.Add("token", strconv.FormatInt(h.Token(), 10))
	return httpsfv.Marshal(item)
}

// isPrintable reports whether a key can be a string of structured fields.
func isPrintable(key string) bool {
	for i := range len(key) {
		if key[i] < ' ' || key[i] > '~' {
			return false
		}
	}
	return true
}

// Parse returns the key and the token that a request's headers have. Its errors are [ErrMissing] and
// [ErrMalformed]. Two headers are as malformed as none that makes sense.
func Parse(header http.Header) (fence.Stamp, error) {
	values := header.Values(Header)
	if len(values) == 0 {
		return fence.Stamp{}, ErrMissing
	}
	if len(values) > 1 || len(values[0]) > maxHeaderLen {
		return fence.Stamp{}, fmt.Errorf("%w: it has to be one, of at most %d bytes", ErrMalformed, maxHeaderLen)
	}
	item, err := httpsfv.UnmarshalItem(values)
	if err != nil {
		return fence.Stamp{}, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	var key string
	switch value := item.Value.(type) {
	case string:
		key = value
	case httpsfv.DisplayString:
		key = string(value)
	default:
		return fence.Stamp{}, fmt.Errorf("%w: the key is no string", ErrMalformed)
	}
	digits, _ := item.Params.Get("token")
	text, _ := digits.(string)
	token, err := strconv.ParseInt(text, 10, 64)
	if err != nil || strconv.FormatInt(token, 10) != text { // no signs and no zeros in front
		return fence.Stamp{}, fmt.Errorf("%w: the parameter token is no number in quotes", ErrMalformed)
	}
	stamp, err := fence.NewStamp(key, token)
	if err != nil {
		return fence.Stamp{}, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return stamp, nil
}
