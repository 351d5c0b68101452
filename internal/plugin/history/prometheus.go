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
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/evenkeel/evenkeel/internal/demand"
	"github.com/evenkeel/evenkeel/internal/plural"
)

const (
	// chunk is how much time one request covers, so that no answer is too large.
	chunk = 6 * time.Hour
	// maxSteps is how many values of a series Prometheus returns at most.
	maxSteps = 11_000
)

// Validate reports what a server cannot be asked.
func (p Prometheus) Validate() error {
	if p.Step < time.Second || p.Step > chunk {
		return fmt.Errorf("step %v: use 1s to %v", p.Step, chunk)
	}
	if int(chunk/p.Step) >= maxSteps {
		return fmt.Errorf("step %v: use at least %v", p.Step, (chunk/maxSteps).Truncate(time.Second)+time.Second)
	}
	return nil
}

// podKey identifies a pod. Its uid is missing in old versions of kube-state-metrics.
type podKey struct{ namespace, name, uid string }

// podRecord is what the metrics show about a pod.
type podRecord struct {
	created, started, completed, seen time.Time
	cpu, memory                       float64
	// daemon reports whether a DaemonSet or the kubelet itself runs it, and here whether it was
	// bound to one of the Nodes.
	daemon, here bool
}

// query is asked for each chunk of time.
type query struct {
	text string
	// once reports whether one value for each chunk is enough.
	once bool
	read func(*podRecord, sample)
}

// queries are what is asked for each chunk of time: %[1]s are the matchers, %[2]s is the range that
// a value looks back, so that no pod is missed between two steps. A container has several series if
// its pod was bound in that range, because the Node is a label, or if kube-state-metrics restarted.
var queries = []query{
	{`max by (namespace, pod, uid) (max_over_time(kube_pod_created{%[1]s}[%[2]s]))`, false, func(l *podRecord, s sample) {
		l.created = instantOf(s.Value)
		if s.At.After(l.seen) {
			l.seen = s.At
		}
	}},
	{`max by (namespace, pod, uid) (max_over_time(kube_pod_start_time{%[1]s}[%[2]s]))`, true, func(l *podRecord, s sample) { l.started = instantOf(s.Value) }},
	// The completion time of a pod that runs is that of a container that has ended, or was restarted.
	{`max by (namespace, pod, uid) (max_over_time(kube_pod_completion_time{%[1]s}[%[2]s])) and max by (namespace, pod, uid) (max_over_time(kube_pod_status_phase{phase=~"Succeeded|Failed",%[1]s}[%[2]s])) > 0`, true, func(l *podRecord, s sample) { l.completed = instantOf(s.Value) }},
	{`sum by (namespace, pod, uid) (max by (namespace, pod, uid, container) (max_over_time(kube_pod_container_resource_requests{resource="cpu",%[1]s}[%[2]s])))`, true, func(l *podRecord, s sample) { l.cpu = max(l.cpu, s.Value) }},
	{`sum by (namespace, pod, uid) (max by (namespace, pod, uid, container) (max_over_time(kube_pod_container_resource_requests{resource="memory",%[1]s}[%[2]s])))`, true, func(l *podRecord, s sample) { l.memory = max(l.memory, s.Value) }},
	{`max by (namespace, pod, uid) (max_over_time(kube_pod_owner{owner_kind=~"DaemonSet|Node",%[1]s}[%[2]s]))`, true, func(l *podRecord, _ sample) { l.daemon = true }},
}

// queries returns what is asked. Only pods on Nodes are asked for if these are selected.
func (p Prometheus) queries() []query {
	if p.Nodes == "" {
		return queries
	}
	onNodes := `max by (namespace, pod, uid) (max_over_time(kube_pod_info{node=~` + strings.ReplaceAll(strconv.Quote(p.Nodes), "%", "%%") + `,%[1]s}[%[2]s]))`
	return append(slices.Clone(queries), query{onNodes, true, func(l *podRecord, _ sample) { l.here = true }})
}

// Trace returns the pods that existed at some time from start to end.
func (p Prometheus) Trace(ctx context.Context, start, end time.Time) (demand.Trace, []string, error) {
	if err := p.Validate(); err != nil {
		return nil, nil, err
	}
	if end.Sub(start) > demand.MaxSpan {
		return nil, nil, fmt.Errorf("the time from %s to %s is too long: set --start and --end", start.Format(time.RFC3339), end.Format(time.RFC3339))
	}
	pods := map[podKey]*podRecord{}
	for from := start; from.Before(end); from = from.Add(chunk) {
		if err := p.readChunk(ctx, pods, from, earlier(from.Add(chunk), end)); err != nil {
			return nil, nil, err
		}
		if len(pods) > demand.MaxPods {
			return nil, nil, demand.ErrTooManyPods
		}
	}
	trace, unread := p.traceOf(pods, end)
	if len(trace)+unread == 0 {
		return nil, nil, errors.New("Prometheus has no kube_pod_created for this time: check that it scrapes kube-state-metrics and that --prometheus-matchers match")
	}
	notes := []string{fmt.Sprintf("for deleted pods, the end is when Prometheus saw them last, within %v", p.Step)}
	if unread > 0 {
		notes = append(notes, "omitted: "+plural.Of(unread, "pod")+" with invalid values")
	}
	return trace, notes, nil
}

// readChunk reads some hours.
func (p Prometheus) readChunk(ctx context.Context, pods map[podKey]*podRecord, from, to time.Time) error {
	for _, q := range p.queries() {
		first, step := p.firstStep(from, to), p.Step
		if q.once {
			first, step = to, to.Sub(from)
		}
		text := fmt.Sprintf(q.text, p.Matchers, fmt.Sprintf("%ds", int(math.Ceil(step.Seconds()))))
		all, err := p.queryRange(ctx, text, first, to, step)
		if err != nil {
			return err
		}
		for _, one := range all {
			collect(pods, one, q.read)
		}
	}
	return nil
}

// firstStep returns when a value is asked for first, so that the last one is for the end.
func (p Prometheus) firstStep(from, to time.Time) time.Time {
	if rest := to.Sub(from) % p.Step; rest > 0 {
		return from.Add(rest)
	}
	return from.Add(p.Step)
}

func collect(pods map[podKey]*podRecord, one series, read func(*podRecord, sample)) {
	key := podKey{one.Metric["namespace"], one.Metric["pod"], one.Metric["uid"]}
	if pods[key] == nil {
		pods[key] = &podRecord{}
	}
	for _, s := range one.Values {
		read(pods[key], s)
	}
}

// traceOf returns the pods, and how many of them have values that no pod can have.
func (p Prometheus) traceOf(pods map[podKey]*podRecord, end time.Time) (trace demand.Trace, unread int) {
	for _, l := range pods {
		if l.created.IsZero() || l.daemon || p.Nodes != "" && !l.here {
			continue
		}
		started := later(l.created, l.started)
		one := demand.Pods{Created: l.created, CPU: roundUp(l.cpu * 1000), Memory: roundUp(l.memory), Count: 1}
		switch {
		case !l.completed.IsZero():
			one.Lasts = durationUntil(started, l.completed)
		case l.seen.Before(end.Add(-p.Step)):
			// The last time that it was scraped is in the step before.
			one.Lasts = durationUntil(started, l.seen.Add(-p.Step/2))
		}
		if one.Validate() != nil || one.Created.After(end) {
			unread++
			continue
		}
		trace = append(trace, one)
	}
	sortAll(trace)
	return trace, unread
}

// roundUp rounds up, and marks with -1 what is no amount.
func roundUp(n float64) int64 {
	if !(n >= 0 && n < math.MaxInt64/2) {
		return -1
	}
	return int64(math.Ceil(math.Round(n*1e6) / 1e6))
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

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
var errRedirected = errors.New("the server redirects: use the address that it redirects to")

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
