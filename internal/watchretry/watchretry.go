// SPDX-License-Identifier: Apache-2.0

// Package watchretry repeats the request that fills an informer while the API server refuses it.
//
// client-go's reflector does that, too, but delays the stop of the process by up to a minute. Here,
// the wait ends with the request.
package watchretry

import (
	"net/http"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/wait"
)

// The first wait is what an overloaded API server requests by Retry-After. Jitter at most doubles
// the last one.
const firstDelay, lastDelay = time.Second, 30 * time.Second

// Wrap returns a RoundTripper that repeats watches that begin with a list until the request's
// context ends, if the connection is refused or the API server has too many requests.
func Wrap(next http.RoundTripper) http.RoundTripper { return repeater{next} }

type repeater struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (r repeater) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.URL.Query().Get("sendInitialEvents") != "true" {
		return r.next.RoundTrip(request)
	}
	delay := wait.Backoff{Duration: firstDelay, Cap: lastDelay, Factor: 2, Jitter: 1, Steps: 8}
	for {
		response, err := r.next.RoundTrip(request)
		switch {
		case err == nil && response.StatusCode == http.StatusTooManyRequests:
			_ = response.Body.Close()
		case err == nil || !utilnet.IsConnectionRefused(err):
			return response, err
		}
		select {
		case <-request.Context().Done():
			return nil, request.Context().Err()
		case <-time.After(delay.Step()):
		}
	}
}

// WrappedRoundTripper lets client-go close the connections.
func (r repeater) WrappedRoundTripper() http.RoundTripper { return r.next }
