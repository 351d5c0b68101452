// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"sync"
	"time"

	"google.golang.org/grpc"
	"k8s.io/client-go/tools/cache"
)

// Recorder records the calls of a server. They are answered one after the other, so that it is
// known which objects and which writes belong to each.
type Recorder struct {
	begun   time.Time
	stores  map[string]cache.Store
	patches *Patches
	mu      sync.Mutex
	objects Objects
	steps   []Step
	errs    []error
}

// NewRecorder returns a recorder that begins now. The stores are those of the server's informers by
// resource, the patches those that its client sends.
func NewRecorder(stores map[string]cache.Store, patches *Patches) *Recorder {
	return &Recorder{begun: time.Now().Truncate(time.Second), stores: stores, patches: patches, objects: Objects{}}
}

// Observe is an interceptor of the server's calls.
func (r *Recorder) Observe(ctx context.Context, request any, call *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	changed, looked := r.objects.update(r.stores, r.begun, now)
	r.patches.Take()
	answer, failed := handle(ctx, request)
	step, err := r.objects.NewCall(path.Base(call.FullMethod), request, answer, failed)
	step.At = seconds(r.begun, now)
	for _, patch := range r.patches.Take() {
		step.Writes = append(step.Writes, patch.Change)
	}
	r.steps = append(append(r.steps, changed...), step)
	r.errs = append(r.errs, looked, err)
	return answer, failed
}

// Save writes what was recorded to a file.
func (r *Recorder) Save(file string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := errors.Join(r.errs...); err != nil {
		return fmt.Errorf("record: %w", err)
	}
	return write(file, r.steps, r.begun)
}

// Patches collects the patches that a client sends and that take effect.
type Patches struct {
	mu   sync.Mutex
	sent []Patch
}

// Patch is a patch, divided into the version that it was decided on and what it changes.
type Patch struct {
	ResourceVersion, UID string
	Change               json.RawMessage
}

// Take returns the patches since the last time.
func (p *Patches) Take() []Patch {
	p.mu.Lock()
	defer p.mu.Unlock()
	sent := p.sent
	p.sent = nil
	return sent
}

// Wrap is for the transport of the client.
func (p *Patches) Wrap(next http.RoundTripper) http.RoundTripper { return transport{p, next} }

type transport struct {
	patches *Patches
	next    http.RoundTripper
}

// RoundTrip implements [http.RoundTripper].
func (t transport) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method != http.MethodPatch {
		return t.next.RoundTrip(request)
	}
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return nil, err
	}
	request = request.Clone(request.Context())
	request.Body = io.NopCloser(bytes.NewReader(body))
	response, err := t.next.RoundTrip(request)
	if err == nil && response.StatusCode < http.StatusMultipleChoices {
		err = t.patches.add(body)
	}
	return response, err
}

func (p *Patches) add(body []byte) error {
	var patch struct {
		Metadata map[string]any `json:"metadata,omitempty"`
		Spec     map[string]any `json:"spec,omitempty"`
	}
	if err := json.Unmarshal(body, &patch); err != nil {
		return fmt.Errorf("decode patch: %w", err)
	}
	version, _ := patch.Metadata["resourceVersion"].(string)
	uid, _ := patch.Metadata["uid"].(string)
	delete(patch.Metadata, "resourceVersion")
	delete(patch.Metadata, "uid")
	change, err := json.Marshal(patch)
	if err != nil {
		return fmt.Errorf("encode patch: %w", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sent = append(p.sent, Patch{ResourceVersion: version, UID: uid, Change: change})
	return nil
}
