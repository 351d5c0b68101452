// SPDX-License-Identifier: Apache-2.0

package read_test

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	. "github.com/evenkeel/evenkeel/internal/plugin/read"
	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/client/clientset/versioned"
	"github.com/evenkeel/evenkeel/test/fixture"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/storm"
)

// suite is what virtual time wants to know; specs run while TestRead does.
var suite *testing.T

func TestRead(t *testing.T) {
	suite = t
	RegisterFailHandler(Fail)
	RunSpecs(t, "Read")
}

// everything are all kinds that there are to read.
func everything() []sim.Resource {
	return slices.Concat(sim.Core, sim.Machine, []sim.Resource{
		{Group: "balancer.x-k8s.io", Version: "v1alpha1", Name: "balancers", Kind: "Balancer", Namespaced: true, Status: true},
		{Group: "autoscaling.evenkeel.dev", Version: "v1alpha1", Name: "federatedhorizontalpodautoscalers", Kind: "FederatedHorizontalPodAutoscaler", Namespaced: true, Status: true},
		{Group: "autoscaling.evenkeel.dev", Version: "v1alpha1", Name: "reserves", Kind: "Reserve", Namespaced: true, Status: true},
		{Group: "autoscaling.x-k8s.io", Version: "v1beta1", Name: "capacitybuffers", Kind: "CapacityBuffer", Namespaced: true, Status: true},
		{Group: "autoscaling.x-k8s.io", Version: "v1", Name: "provisioningrequests", Kind: "ProvisioningRequest", Namespaced: true, Status: true},
	})
}

// scene is a cluster in virtual time. What it starts ends with it.
type scene struct {
	*sim.Server
	context.Context
	ours versioned.Interface
	core kubernetes.Interface
}

func play(resources []sim.Resource, body func(scene)) {
	GinkgoHelper()
	storm.Bubble(suite, func() {
		s := sim.New(sim.Options{Resources: resources})
		ctx, cancel := context.WithCancel(context.Background())
		defer time.Sleep(time.Minute)
		defer s.Close()
		defer cancel()
		body(scene{s, ctx, versioned.NewForConfigOrDie(s.ConfigFor("writer")), kubernetes.NewForConfigOrDie(s.ConfigFor("writer"))})
	})
}

// clusters are the scene as a reader of one namespace sees it.
func (s scene) clusters(target *rest.Config) Clusters {
	GinkgoHelper()
	c, err := New(s.ConfigFor("reader"), target, fixture.Namespace)
	Expect(err).NotTo(HaveOccurred())
	c.Clock = clock.RealClock{}
	return c
}

func (s scene) deployment(name string) {
	GinkgoHelper()
	plain := fixture.MachineDeployment(name, 1)
	d := &v1alpha1.MachineDeployment{ObjectMeta: plain.ObjectMeta}
	d.Spec.StockMachineDeploymentSpec = plain.Spec
	_, err := s.ours.MachineV1alpha1().MachineDeployments(fixture.Namespace).Create(s, d, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
}

func (s scene) pod(name string, change ...func(*corev1.Pod)) {
	GinkgoHelper()
	_, err := s.core.CoreV1().Pods(fixture.Namespace).Create(s, fixture.Pod(name, change...), metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
}

// refusing has every request for a resource answered with a status code.
func refusing(config *rest.Config, resource string, code int) *rest.Config {
	config.Transport = refusal{config.Transport, "/" + resource, code}
	return config
}

type refusal struct {
	http.RoundTripper
	path string
	code int
}

func (r refusal) RoundTrip(request *http.Request) (*http.Response, error) {
	if len(request.URL.Path) < len(r.path) || request.URL.Path[len(request.URL.Path)-len(r.path):] != r.path {
		return r.RoundTripper.RoundTrip(request)
	}
	status := metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: int32(r.code), Message: "no"}
	if r.code == http.StatusForbidden {
		status.Reason = metav1.StatusReasonForbidden
	}
	text, err := json.Marshal(status)
	if err != nil {
		return nil, err
	}
	return response(request, r.code, text), nil
}

// late refuses only what the server would answer.
type late struct{ refusal }

func (l late) RoundTrip(request *http.Request) (*http.Response, error) {
	answer, err := l.RoundTripper.RoundTrip(request)
	if err != nil || !strings.HasSuffix(request.URL.Path, l.path) {
		return answer, err
	}
	_ = answer.Body.Close()
	return l.refusal.RoundTrip(request)
}

// expiry has the first request for another page of a list answered with the news that the list has
// expired.
type expiry struct {
	http.RoundTripper
	// offers reports whether the answer says how to go on, as that of an API server does.
	offers bool
	done   bool
}

func (e *expiry) RoundTrip(request *http.Request) (*http.Response, error) {
	if e.done || request.URL.Query().Get("continue") == "" {
		return e.RoundTripper.RoundTrip(request)
	}
	e.done = true
	status := metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: http.StatusGone, Reason: metav1.StatusReasonExpired,
	}
	if e.offers {
		status.Continue = request.URL.Query().Get("continue")
	}
	text, err := json.Marshal(status)
	if err != nil {
		return nil, err
	}
	return response(request, http.StatusGone, text), nil
}
