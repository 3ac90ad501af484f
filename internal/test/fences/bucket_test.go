// SPDX-License-Identifier: Apache-2.0

package fences

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"

	"github.com/asynclock/asynclock-go/fence"
)

// An orderObject is an object in a bucket, as JSON. The token is in the body, because S3 makes the ETag of
// the body alone: two holders that write the same state must not write the same ETag.
type orderObject struct {
	State string
	Token int64 `json:",string"`
}

// errChanged: somebody has written the object since it was read.
var errChanged = errors.New("the object has changed")

// A bucket is what a fence needs of an object store. With the SDK of AWS, get is GetObject, and put is
// PutObject with IfMatch, or with IfNoneMatch if there was no object.
type bucket interface {
	get(ctx context.Context, name string) (o orderObject, etag string, err error)
	put(ctx context.Context, name string, o orderObject, etag string) error
}

// saveOrder writes an object, unless a later holder has.
func saveOrder(ctx context.Context, b bucket, lease fence.Holder, name, state string) error {
	for {
		old, etag, err := b.get(ctx, name)
		if err != nil {
			return err
		}
		if err := fence.Admit(lease, name, old.Token); err != nil {
			return err // ErrStale
		}
		err = b.put(ctx, name, orderObject{state, lease.Token()}, etag)
		if !errors.Is(err, errChanged) {
			return err
		}
	}
}

// A plainBucket is at a server that wants no signatures.
type plainBucket struct{ url string }

func (b plainBucket) get(ctx context.Context, name string) (o orderObject, etag string, err error) {
	answer, err := b.ask(ctx, http.MethodGet, name, nil, nil)
	if err != nil {
		return o, "", err
	}
	defer func() { _ = answer.Body.Close() }()
	switch answer.StatusCode {
	case http.StatusOK:
		err = json.NewDecoder(answer.Body).Decode(&o)
		return o, answer.Header.Get("ETag"), err
	case http.StatusNotFound:
		return o, "", nil
	}
	return o, "", errors.New(answer.Status)
}

func (b plainBucket) put(ctx context.Context, name string, o orderObject, etag string) error {
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
	defer func() { _ = answer.Body.Close() }()
	switch answer.StatusCode {
	case http.StatusOK:
		return nil
	case http.StatusPreconditionFailed, http.StatusConflict:
		return errChanged
	}
	return errors.New(answer.Status)
}

func (b plainBucket) ask(ctx context.Context, method, name string, header http.Header, body []byte) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, b.url+"/"+name, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	maps.Copy(request.Header, header)
	return http.DefaultClient.Do(request)
}
