// SPDX-License-Identifier: Apache-2.0

package history

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const (
	// patience limits a request. Prometheus ends a query itself after two minutes.
	patience = 2 * time.Minute
	// maxBody is how much of an answer is read.
	maxBody = 64 << 20
	// latest is the end of the year 2199, in seconds since 1970.
	latest = 7_258_118_400
	// maxMessage is how much of an error of the server is shown.
	maxMessage = 200
)

// Prometheus is a server with metrics of kube-state-metrics.
type Prometheus struct {
	// URL is where its API is, without /api/v1.
	URL string
	// Token is sent as a bearer token if it is not empty.
	Token string
	// Matchers select pods by labels of the metrics, for example namespace="shop"; may be empty.
	Matchers string
	// Nodes is a regular expression for the names of Nodes; pods on others are left out. Empty
	// takes all pods.
	Nodes string
	// Step is the resolution at which pods end.
	Step time.Duration
}

// series is one time series of an answer.
type series struct {
	Metric map[string]string `json:"metric"`
	Values []sample          `json:"values"`
}

// sample is a value at a time, written as [1435781430.781, "1"].
type sample struct {
	At    time.Time
	Value float64
}

// UnmarshalJSON reads the form of Prometheus.
func (s *sample) UnmarshalJSON(text []byte) error {
	var at float64
	var value string
	if err := json.Unmarshal(text, &[]any{&at, &value}); err != nil {
		return err
	}
	n, err := strconv.ParseFloat(value, 64)
	if err != nil || instantOf(at).IsZero() {
		return fmt.Errorf("sample %.60s is invalid", text)
	}
	s.At, s.Value = instantOf(at), n
	return nil
}

// instantOf returns the instant that many seconds after the beginning of 1970; zero if there is
// none.
func instantOf(seconds float64) time.Time {
	if !(seconds > 0 && seconds < latest) {
		return time.Time{}
	}
	return time.UnixMilli(int64(math.Round(seconds * 1000))).UTC()
}

// answer is what the API answers.
type answer struct {
	Status string `json:"status"`
	Data   struct {
		ResultType string   `json:"resultType"`
		Result     []series `json:"result"`
	} `json:"data"`
	ErrorType string `json:"errorType"`
	Error     string `json:"error"`
}

// queryRange evaluates a query at each step from start to end.
func (p Prometheus) queryRange(ctx context.Context, query string, start, end time.Time, step time.Duration) ([]series, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	form := url.Values{
		"query": {query}, "start": {formatTime(start)}, "end": {formatTime(end)}, "step": {strconv.FormatFloat(step.Seconds(), 'f', -1, 64)},
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimSuffix(p.URL, "/")+"/api/v1/query_range", strings.NewReader(form.Encode()))
	if err != nil {
		return nil, fmt.Errorf("query Prometheus: %w", err)
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if p.Token != "" {
		request.Header.Set("Authorization", "Bearer "+p.Token)
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("query Prometheus: %w", err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxBody+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read the answer of Prometheus: %w", err)
	case len(body) > maxBody:
		return nil, fmt.Errorf("the answer of Prometheus is larger than %d MiB: select fewer pods with --prometheus-matchers, or a larger --prometheus-step", maxBody>>20)
	}
	return parseAnswer(response.Status, response.StatusCode, body)
}

// client follows no redirect.
var client = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return errRedirected }}

// errRedirected is returned if the server is elsewhere: a token is sent only where the user said.
var errRedirected = errors.New("the server redirects: name the address that it redirects to")

func parseAnswer(status string, code int, body []byte) ([]series, error) {
	var a answer
	err := json.Unmarshal(body, &a)
	switch {
	case err == nil && a.Status == "error":
		return nil, fmt.Errorf("query Prometheus: %s: %.*s", a.ErrorType, maxMessage, a.Error)
	case code != http.StatusOK:
		return nil, fmt.Errorf("query Prometheus: %s", status)
	case err != nil:
		return nil, fmt.Errorf("read the answer of Prometheus: %w", err)
	case a.Status != "success" || a.Data.ResultType != "matrix":
		return nil, fmt.Errorf("read the answer of Prometheus: status %.20q, type %.20q", a.Status, a.Data.ResultType)
	}
	return a.Data.Result, nil
}

func formatTime(t time.Time) string {
	return strconv.FormatFloat(float64(t.UnixMilli())/1000, 'f', 3, 64)
}
