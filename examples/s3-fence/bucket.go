// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"

	"github.com/asynclock/asynclock-go/fence"
)

// An object is what the bucket has, as JSON. The token is text, because JavaScript rounds large numbers.
type object struct {
	State string
	Token int64 `json:",string"`
}

// errChanged: somebody has written the object since it was read.
var errChanged = errors.New("the object has changed")

// A bucket is one of S3. With the SDK of AWS, get is GetObject. And put is PutObject with IfMatch, or with
// IfNoneMatch if there was no object.
type bucket struct{ url string }

// save writes an object, unless a later holder has: then the error is ErrStale.
func (b *bucket) save(ctx context.Context, lease fence.Holder, name, state string) error {
	for {
		old, etag, err := b.get(ctx, name)
		if err != nil {
			return err
		}
		if err := fence.Admit(lease, name, old.Token); err != nil {
			return err
		}
		err = b.put(ctx, name, object{state, lease.Token()}, etag)
		if !errors.Is(err, errChanged) { // else look who it was
			return err
		}
	}
}

// get returns an object and its ETag. Without an object both are empty.
func (b *bucket) get(ctx context.Context, name string) (o object, etag string, err error) {
	answer, err := b.ask(ctx, http.MethodGet, name, nil, nil)
	if err != nil {
		return o, "", err
	}
	defer answer.Body.Close()
	switch answer.StatusCode {
	case http.StatusOK:
		err = json.NewDecoder(answer.Body).Decode(&o)
		return o, answer.Header.Get("ETag"), err
	case http.StatusNotFound:
		return o, "", nil
	}
	return o, "", errors.New(answer.Status)
}

// put writes an object, if its ETag is still this one. It fails with errChanged if not.
func (b *bucket) put(ctx context.Context, name string, o object, etag string) error {
	body, err := json.Marshal(o)
	if err != nil {
		return err
	}
	condition := http.Header{"If-Match": {etag}}
	if etag == "" {
		condition = http.Header{"If-None-Match": {"*"}}
	}
	answer, err := b.ask(ctx, http.MethodPut, name, condition, body)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	switch answer.StatusCode {
	case http.StatusOK:
		return nil
	case http.StatusPreconditionFailed, http.StatusConflict:
		return errChanged
	}
	return errors.New(answer.Status)
}

func (b *bucket) ask(ctx context.Context, method, name string, header http.Header, body []byte) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, b.url+"/"+name, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	maps.Copy(request.Header, header)
	return http.DefaultClient.Do(request)
}
