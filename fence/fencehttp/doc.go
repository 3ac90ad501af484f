// SPDX-License-Identifier: Apache-2.0

// Package fencehttp takes fencing tokens to a service over HTTP, in the header Fencing-Token:
//
//	Fencing-Token: "order:42";token="1795360368123456"
//
// The header is an item of structured fields (RFC 9651): the lock's key, and the token as a parameter.
// The token is text, because integers end at 15 digits there. A key that is not printable ASCII is a
// display string. Other parameters are ignored.
//
// The client sends with a [Transport], under [NewContext]. The service wraps its handlers in [Require],
// and shows the [Holder] of the request to a fence of its own.
//
// The header is about one key. A request on behalf of several has a fence.Stamps in its body, which the service
// shows to a fence by GuardAll or DoAll.
//
// # What is not safe
//
// Require reads the header, and refuses a request without one. It does not compare tokens, because that
// would protect nothing: a request that was let in can be overtaken before its handler writes. Only a
// fence that is one atomic step with the write refuses late ones. That is fencesql or fencepgx in the
// handler's transaction, fenceredis, or a fence.Gate around all that the handler changes.
//
// The service has to trust its clients. A token is no secret, and whoever sends a huge one shuts out
// everyone else.
package fencehttp
