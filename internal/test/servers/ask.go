// SPDX-License-Identifier: Apache-2.0

package servers

import (
	"context"
	"fmt"
	"strings"

	"github.com/redis/rueidis"
)

// Client is connected to this server, whatever it is part of. It ends with Close.
func (r *Redis) Client() (rueidis.Client, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.client != nil {
		return r.client, nil
	}
	client, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{r.Addr}, TLSConfig: r.tls,
		ForceSingleClient: true,
		AlwaysRESP2:       true, // RESP3 marks texts with their format, in the text
		DisableCache:      true, // RESP2 has none, nor has a sentinel
		DisableRetry:      true,
		AlwaysPipelining:  true, // which notices at once that the server has hung up
	})
	if err != nil {
		return nil, err
	}
	r.client = client
	return client, nil
}

// hangUp ends the connection, until somebody asks again.
func (r *Redis) hangUp() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.client != nil {
		r.client.Close()
		r.client = nil
	}
}

// Ask sends a command to this server. A reply that is nil is no error.
func (r *Redis) Ask(ctx context.Context, words ...string) (rueidis.RedisMessage, error) {
	client, err := r.Client()
	if err != nil {
		return rueidis.RedisMessage{}, err
	}
	m, err := client.Do(ctx, client.B().Arbitrary(words...).Build()).ToMessage()
	if err != nil && !rueidis.IsRedisNil(err) {
		return m, fmt.Errorf("%s: %s: %w", r.Name, words[0], err)
	}
	return m, nil
}

// Do is Ask for a command whose reply says only that it was done.
func (r *Redis) Do(ctx context.Context, words ...string) error {
	_, err := r.Ask(ctx, words...)
	return err
}

// Text is Ask for a reply to be read as text, whatever its type. It is empty for nil.
func (r *Redis) Text(ctx context.Context, words ...string) (string, error) {
	m, err := r.Ask(ctx, words...)
	if err != nil || m.IsNil() {
		return "", err
	}
	value, err := m.ToAny()
	return fmt.Sprint(value), err
}

// List is Ask for a reply of several words.
func (r *Redis) List(ctx context.Context, words ...string) ([]string, error) {
	m, err := r.Ask(ctx, words...)
	if err != nil {
		return nil, err
	}
	return m.AsStrSlice()
}

// Facts is Ask for a reply in lines of name:value, as INFO has.
func (r *Redis) Facts(ctx context.Context, words ...string) (map[string]string, error) {
	text, err := r.Text(ctx, words...)
	if err != nil {
		return nil, err
	}
	facts := make(map[string]string)
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			facts[name] = value
		}
	}
	return facts, nil
}

// Role is master or slave, as the server says.
func (r *Redis) Role(ctx context.Context) (string, error) {
	facts, err := r.Facts(ctx, "INFO", "replication")
	return facts["role"], err
}

// Follows checks that a replica has its primary's data, and that the primary knows.
func (r *Redis) Follows(ctx context.Context, primary *Redis) error {
	facts, err := r.Facts(ctx, "INFO", "replication")
	if err != nil {
		return err
	}
	if err := expect(facts, map[string]string{"role": "slave", "master_link_status": "up", "master_port": primary.Port()}); err != nil {
		return fmt.Errorf("%s: %w", r.Name, err)
	}
	if facts, err = primary.Facts(ctx, "INFO", "replication"); err != nil {
		return err
	}
	for _, value := range facts { // slave0:ip=127.0.0.1,port=1234,state=online,…
		if strings.Contains(value, "port="+r.Port()+",state=online") {
			return nil
		}
	}
	return fmt.Errorf("%s does not know that %s is in step", primary.Name, r.Name)
}
