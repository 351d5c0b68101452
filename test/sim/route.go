// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
)

// Request is a request as faults see it.
type Request struct {
	User        string
	Verb        string // get, list, watch, create, update, patch, delete or deletecollection
	Resource    string // plural; empty for discovery
	Subresource string
	Namespace   string
	Name        string
}

// Writes reports whether the request may change something.
func (r Request) Writes() bool {
	return !slices.Contains([]string{"get", "list", "watch"}, r.Verb)
}

type request struct {
	Request
	ctx    context.Context
	client *Client
	table  *table
	path   []string
	query  url.Values
	body   []byte
	patch  types.PatchType
	agent  string

	// lost is why the answer to a write that took effect does not arrive.
	lost error
}

func (r *request) objectKey() key { return key{r.Namespace, r.Name} }

func (r *request) dryRun() bool { return r.query.Get("dryRun") != "" }

// parseRequest parses a request's path: /api/v1/... or /apis/<group>/<version>/...
func (s *Server) parseRequest(c *Client, hr *http.Request, body []byte) (*request, error) {
	r := &request{
		Request: Request{User: c.user, Verb: "get"},
		ctx:     hr.Context(), client: c, query: hr.URL.Query(), body: body, agent: hr.UserAgent(),
		path: strings.Split(strings.Trim(hr.URL.Path, "/"), "/"),
	}
	gvr, namespace, rest := located(r.path)
	if rest == nil {
		return r, nil
	}
	r.Namespace, r.table = namespace, s.tables[gvr]
	if r.table == nil || len(rest) > 3 {
		return nil, unknownPath(hr.URL.Path)
	}
	r.Resource = rest[0]
	if len(rest) > 1 {
		r.Name = rest[1]
	}
	if len(rest) > 2 {
		r.Subresource = rest[2]
	}
	if r.Name != "" && r.table.Namespaced != (r.Namespace != "") {
		return nil, unknownPath(hr.URL.Path)
	}
	return r, r.setVerb(hr)
}

// located contains the kind and the namespace of a path, and the rest from the kind on; without a
// kind there is no rest.
func located(path []string) (gvr schema.GroupVersionResource, namespace string, rest []string) {
	var gv schema.GroupVersion
	switch p := path; {
	case p[0] == "api" && len(p) > 2:
		gv, rest = schema.GroupVersion{Version: p[1]}, p[2:]
	case p[0] == "apis" && len(p) > 3:
		gv, rest = schema.GroupVersion{Group: p[1], Version: p[2]}, p[3:]
	default:
		return gvr, "", nil
	}
	if rest[0] == "namespaces" && len(rest) > 2 {
		namespace, rest = rest[1], rest[2:]
	}
	return gv.WithResource(rest[0]), namespace, rest
}

func (r *request) setVerb(hr *http.Request) error {
	one := r.Name != ""
	switch hr.Method {
	case http.MethodGet:
		switch {
		case one:
			r.Verb = "get"
		case r.query.Get("watch") == "true" || r.query.Get("watch") == "1":
			r.Verb = "watch"
		default:
			r.Verb = "list"
		}
	case http.MethodPost:
		r.Verb = "create"
	case http.MethodPut:
		r.Verb = "update"
	case http.MethodPatch:
		r.Verb = "patch"
	case http.MethodDelete:
		r.Verb = "delete"
		if !one {
			r.Verb = "deletecollection"
		}
	}
	if (r.Verb == "update" || r.Verb == "patch") && !one || r.Verb == "create" && one && r.Subresource == "" {
		return apierrors.NewMethodNotSupported(r.table.gvr.GroupResource(), r.Verb)
	}
	return r.checkMediaType(hr.Header.Get("Content-Type"))
}

// checkMediaType accepts JSON, and for patches the kinds of patch that the server supports.
func (r *request) checkMediaType(header string) error {
	if len(r.body) == 0 {
		return nil
	}
	media, _, err := mime.ParseMediaType(header)
	if err != nil {
		media = runtime.ContentTypeJSON
	}
	if r.Verb != "patch" {
		return r.decodeBody(media)
	}
	r.patch = types.PatchType(media)
	accepted := []types.PatchType{types.JSONPatchType, types.MergePatchType}
	if r.Subresource != "scale" {
		accepted = append(accepted, types.ApplyPatchType)
	}
	if r.table.Type != nil && r.Subresource != "scale" {
		accepted = append(accepted, types.StrategicMergePatchType)
	}
	if !slices.Contains(accepted, r.patch) {
		return unsupported(fmt.Sprintf("the body of the request was in an unknown format - accepted media types include: %v", accepted))
	}
	return nil
}

// decodeBody converts a body to JSON. It may be protobuf for the kinds that have it.
func (r *request) decodeBody(media string) error {
	switch {
	case media == runtime.ContentTypeJSON:
		return nil
	case media != runtime.ContentTypeProtobuf || r.table.Type == nil:
		return unsupported("the body of the request was in an unsupported format: " + media)
	}
	decoded, _, err := scheme.Codecs.UniversalDeserializer().Decode(r.body, nil, nil)
	if err != nil {
		return apierrors.NewBadRequest("decode protobuf: " + err.Error())
	}
	if r.body, err = json.Marshal(decoded); err != nil {
		return apierrors.NewBadRequest("decode protobuf: " + err.Error())
	}
	return nil
}
