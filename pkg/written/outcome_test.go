// SPDX-License-Identifier: Apache-2.0

package written_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	machineclient "github.com/gardener/machine-controller-manager/pkg/client/clientset/versioned/typed/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/evenkeel/evenkeel/pkg/written"
)

var suite *testing.T

func TestWritten(t *testing.T) {
	suite = t
	RegisterFailHandler(Fail)
	RunSpecs(t, "Written")
}

// reply is one HTTP answer; without a code the connection breaks.
type reply struct {
	code   int
	kind   string // content type
	body   string
	header [2]string
}

// status is an answer as an API server words it.
func status(err *apierrors.StatusError) reply {
	told := err.Status()
	told.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	raw, _ := json.Marshal(told)
	return reply{code: int(told.Code), kind: "application/json", body: string(raw)}
}

// page is what a proxy says by itself, or an API server before it knows what is asked for.
func page(code int) reply {
	return reply{code: code, kind: "text/html", body: "<html>" + http.StatusText(code) + "</html>"}
}

func text(code int) reply {
	return reply{code: code, kind: "text/plain; charset=utf-8", body: http.StatusText(code)}
}

func (r reply) with(key, value string) reply {
	r.header = [2]string{key, value}
	return r
}

// ask sends one request to a server that gives these answers, the last one for ever, and returns the client's error.
func ask(request func(machineclient.MachineInterface) error, replies ...reply) error {
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		r := replies[min(asked, len(replies)-1)]
		asked++
		if r.code == 0 {
			panic(http.ErrAbortHandler)
		}
		w.Header().Set("Content-Type", r.kind)
		if r.header[0] != "" {
			w.Header().Set(r.header[0], r.header[1])
		}
		w.WriteHeader(r.code)
		_, _ = io.WriteString(w, r.body)
	}))
	defer server.Close()
	return request(machineclient.NewForConfigOrDie(&rest.Config{Host: server.URL, QPS: -1}).Machines("shoot"))
}

func write(machines machineclient.MachineInterface) error {
	_, err := machines.Update(context.Background(), &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, metav1.UpdateOptions{})
	return err
}

func read(machines machineclient.MachineInterface) error {
	_, err := machines.Get(context.Background(), "a", metav1.GetOptions{})
	return err
}

var (
	kind     = v1alpha1.Resource("machines")
	machine  = reply{code: 200, kind: "application/json", body: `{"kind":"Machine","apiVersion":"machine.sapcloud.io/v1alpha1","metadata":{"name":"a"}}`}
	conflict = apierrors.NewConflict(kind, "a", errors.New("old"))
	notFound = apierrors.NewNotFound(kind, "a")
	overload = apierrors.NewTooManyRequests("the server is shutting down", 0)
)

var _ = DescribeTable("A write that is answered by", func(want written.Result, replies ...reply) {
	err := ask(write, replies...)
	Expect(written.Outcome(err)).To(Equal(want), "%v", err)
	if err != nil {
		Expect(written.Outcome(fmt.Errorf("scale a: %w", err))).To(Equal(want), "wrapped")
	}
},
	Entry("the object", written.Done, machine),
	Entry("the object, cut in the middle", written.Unknown, reply{code: 200, kind: "application/json", body: machine.body[:40]}),
	Entry("a page with code 200", written.Unknown, page(200)),
	Entry("nothing with code 200", written.Unknown, reply{code: 200, kind: "application/json"}),
	Entry("the end of the connection", written.Unknown, reply{}),

	Entry("400", written.Refused, status(apierrors.NewBadRequest("no"))),
	Entry("403", written.Refused, status(apierrors.NewForbidden(kind, "a", errors.New("exceeded quota")))),
	Entry("404", written.Refused, status(notFound)),
	Entry("405", written.Refused, status(apierrors.NewMethodNotSupported(kind, "put"))),
	Entry("413", written.Refused, status(apierrors.NewRequestEntityTooLargeError("limit is 3 MiB"))),
	Entry("408", written.Unknown, status(apierrors.NewGenericServerResponse(408, "put", kind, "a", "", 0, false))),
	Entry("415", written.Refused, status(apierrors.NewGenericServerResponse(415, "put", kind, "a", "", 0, false))),
	Entry("422", written.Refused, status(apierrors.NewInvalid(schema.GroupKind{Group: kind.Group, Kind: "Machine"}, "a", nil))),

	Entry("409 for a version", written.Conflict, status(conflict)),
	Entry("409 for a name", written.Conflict, status(apierrors.NewAlreadyExists(kind, "a"))),
	Entry("409 after a server error that asked the client to repeat the request", written.Conflict, text(503).with("Retry-After", "0"), status(conflict)),

	Entry("401", written.Unknown, status(apierrors.NewUnauthorized("token expired"))),
	Entry("429 from priority and fairness", written.Unknown, text(429)),
	Entry("429 after a server error that asked the client to repeat the request", written.Unknown, text(503).with("Retry-After", "0"), text(429)),
	Entry("429 as a Status", written.Unknown, status(overload)),
	Entry("500", written.Unknown, status(apierrors.NewInternalError(errors.New("etcd")))),
	Entry("500 for a storage that did not answer in time", written.Unknown, status(apierrors.NewServerTimeout(kind, "put", 0))),
	Entry("503", written.Unknown, status(apierrors.NewServiceUnavailable("etcd"))),
	Entry("504", written.Unknown, status(apierrors.NewTimeoutError("too late", 0))),
	Entry("a code that only some proxies know", written.Unknown, page(520)),

	Entry("a page with code 400", written.Unknown, page(400)),
	Entry("a page with code 401", written.Unknown, page(401)),
	Entry("a page with code 403", written.Unknown, page(403)),
	Entry("a page with code 404", written.Unknown, page(404)),
	Entry("an API server that does not serve the kind yet", written.Unknown, text(404)),
	Entry("a page with code 409", written.Unknown, page(409)),
	Entry("a page with code 502", written.Unknown, page(502)),
	Entry("a page with code 504", written.Unknown, page(504)),
)

var _ = DescribeTable("A read that is answered by", func(want bool, answer reply) {
	err := ask(read, answer)
	Expect(written.Answered(err)).To(Equal(want), "%v", err)
},
	Entry("the object", true, machine),
	Entry("404", true, status(notFound)),
	Entry("an API server that does not serve the kind yet", false, text(404)),
	Entry("a page with code 404", false, page(404)),
	Entry("401", false, status(apierrors.NewUnauthorized("token expired"))),
	Entry("403", false, status(apierrors.NewForbidden(kind, "a", errors.New("no role")))),
	Entry("429", false, text(429)),
	Entry("500", false, status(apierrors.NewInternalError(errors.New("etcd")))),
	Entry("a page with code 503", false, page(503)),
	Entry("the object, cut in the middle", false, reply{code: 200, kind: "application/json", body: machine.body[:40]}),
)
