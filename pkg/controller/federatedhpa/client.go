// SPDX-License-Identifier: Apache-2.0

package federatedhpa

import (
	"net/http"

	"k8s.io/client-go/rest"
)

// clientFor is punctual where programs are involved.
func clientFor(config *rest.Config) (*http.Client, error) {
	client, err := rest.HTTPClientFor(config)
	if err == nil && config.ExecProvider != nil {
		client.Transport = punctual{client.Transport}
	}
	return client, err
}

// punctual ends requests when their time is up, also while a program makes the credentials for them: that one is not told
// of time, and would else keep waiting whoever asks. What it comes to later is not sent any more, since the request is over.
type punctual struct{ next http.RoundTripper }

// RoundTrip is for http.
func (p punctual) RoundTrip(r *http.Request) (*http.Response, error) {
	type end struct {
		response *http.Response
		err      error
	}
	ended := make(chan end, 1)
	go func() {
		response, err := p.next.RoundTrip(r)
		ended <- end{response, err}
	}()
	select {
	case e := <-ended:
		return e.response, e.err
	case <-r.Context().Done():
		go func() {
			if e := <-ended; e.err == nil {
				_ = e.response.Body.Close()
			}
		}()
		return nil, r.Context().Err()
	}
}
