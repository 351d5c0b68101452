// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	pb "github.com/evenkeel/evenkeel/pkg/provider/nodegroup/externalgrpc"
)

func TestRecording(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Recording")
}

var begun = time.Date(2026, time.March, 4, 5, 6, 7, 0, time.UTC)

// node is one that was created some time after the recording began.
func node(name string, after time.Duration, change ...func(*corev1.Node)) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "1", ResourceVersion: "7", Labels: map[string]string{"zone": "a"}, CreationTimestamp: metav1.NewTime(begun.Add(after))}}
	n.Annotations, n.Spec.ProviderID = map[string]string{"since": begun.Format(time.RFC3339)}, "virtual:///"+name
	for _, f := range change {
		f(n)
	}
	return n
}

// call is a step with a request and an answer.
func call(method, request, answer string) Step {
	return Step{Call: method, Request: json.RawMessage(request), Answer: json.RawMessage(answer)}
}

var _ = Describe("A recording", func() {
	target := func(size string) Step { return call("NodeGroupTargetSize", `{"id":"pool"}`, `{"targetSize":`+size+`}`) }
	loop := func(size string) []Step { return []Step{{Call: "Refresh"}, target(size), target(size)} }

	It("has each loop and each answer once, and reads as it was", func() {
		file := filepath.Join(GinkgoT().TempDir(), "story.jsonl")
		changed := Step{Object: "nodes/a", Is: json.RawMessage(`{"at":"2026-03-04T05:06:09.5Z"}`)}
		steps := append(append(append(loop("1"), loop("1")...), changed), append(loop("1"), loop("2")...)...)
		Expect(write(file, steps, begun)).To(Succeed())
		Expect(os.ReadFile(file)).To(BeEquivalentTo(strings.Join([]string{
			`{"at":0,"call":"Refresh","loops":2}`,
			`{"at":0,"call":"NodeGroupTargetSize","times":2,"request":{"id":"pool"},"answer":{"targetSize":1}}`,
			`{"at":0,"object":"nodes/a","is":{"at":"2000-01-01T12:00:02.5Z"}}`,
			`{"at":0,"call":"Refresh","again":true}`,
			`{"at":0,"call":"NodeGroupTargetSize","times":2,"request":{"id":"pool"},"again":true}`,
			`{"at":0,"call":"Refresh","again":true}`,
			`{"at":0,"call":"NodeGroupTargetSize","times":2,"request":{"id":"pool"},"answer":{"targetSize":2}}`,
		}, "\n") + "\n"))
		read, err := Read(file)
		Expect(err).NotTo(HaveOccurred())
		Expect(read).To(HaveLen(7))
		Expect(read[4].Answer).To(MatchJSON(`{"targetSize":1}`))
	})

	It("has what stores hold, and then what changed", func() {
		store, objects := cache.NewStore(cache.MetaNamespaceKeyFunc), Objects{}
		look := func(after time.Duration) string {
			GinkgoHelper()
			steps, err := objects.update(map[string]cache.Store{"nodes": store}, begun, begun.Add(after))
			Expect(err).NotTo(HaveOccurred())
			text, err := json.Marshal(steps)
			Expect(err).NotTo(HaveOccurred())
			return string(text)
		}
		Expect(store.Add(node("young", -time.Second))).To(Succeed())
		Expect(store.Add(node("old", -time.Minute))).To(Succeed())
		Expect(look(time.Second)).To(And(HavePrefix(`[{"at":-60,"object":"nodes/old"`), ContainSubstring(`{"at":-1,"object":"nodes/young"`), Not(ContainSubstring("uid"))))
		Expect(store.Update(node("old", -time.Minute, func(n *corev1.Node) { n.ResourceVersion = "8"; n.Labels["zone"] = "b" }))).To(Succeed())
		Expect(store.Delete(node("young", 0))).To(Succeed())
		Expect(look(2 * time.Second)).To(MatchJSON(`[{"at":2,"object":"nodes/old","is":{"metadata":{"labels":{"zone":"b"}}}},{"at":2,"object":"nodes/young"}]`))
		Expect(look(3 * time.Second)).To(Equal("null"))
	})

	It("has only the name of a Node that is sent as it is, and what differs of another", func() {
		objects := Objects{"nodes/a": json.RawMessage(`{"metadata":{"name":"a","labels":{"zone":"a"},"annotations":{"x":"y"}},"spec":{"providerID":"virtual:///a"}}`)}
		ask := func(labels string) Step {
			GinkgoHelper()
			step, err := objects.NewCall("NodeGroupForNode", &pb.NodeGroupForNodeRequest{Node: &pb.ExternalGrpcNode{
				Name: "a", ProviderID: "virtual:///a", Labels: map[string]string{"zone": labels}, Annotations: map[string]string{"x": "y"}}}, nil, status.Error(codes.NotFound, "no"))
			Expect(err).NotTo(HaveOccurred())
			return step
		}
		Expect(ask("a")).To(And(HaveField("Request", MatchJSON(`{"node":{"name":"a"}}`)), HaveField("Code", "NotFound"), HaveField("Message", "no")))
		copied, err := objects.NewCall("NodeGroupForNode", &pb.NodeGroupForNodeRequest{Node: &pb.ExternalGrpcNode{
			Name: "template-node-for-pool-421-upcoming-0", Labels: map[string]string{"zone": "a"}}}, nil, nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(copied.Request).To(MatchJSON(`{"node":{"name":"template-node-for-pool-N-upcoming-0"}}`))
		Expect(ask("b").Request).To(MatchJSON(`{"node":{"name":"a","labels":{"zone":"b"}}}`))
		request, _, err := objects.Play(context.Background(), pb.UnimplementedCloudProviderServer{}, ask("b"))
		Expect(status.Code(err)).To(Equal(codes.Unimplemented))
		sent := request.(*pb.NodeGroupForNodeRequest).Node
		Expect(sent.ProviderID).To(Equal("virtual:///a"))
		Expect(sent.Labels).To(Equal(map[string]string{"zone": "b"}))
		Expect(sent.Annotations).To(Equal(map[string]string{"x": "y"}))
	})

	It("has the patches that took effect, without their preconditions", func() {
		for code, sent := range map[int]int{http.StatusOK: 1, http.StatusConflict: 0} {
			patches := &Patches{}
			client := patches.Wrap(answering(code))
			request, err := http.NewRequestWithContext(context.Background(), http.MethodPatch, "http://x", bytes.NewBufferString(`{"metadata":{"resourceVersion":"7","uid":"u"},"spec":{"replicas":3}}`))
			Expect(err).NotTo(HaveOccurred())
			_, err = client.RoundTrip(request)
			Expect(err).NotTo(HaveOccurred())
			all := patches.Take()
			Expect(all).To(HaveLen(sent))
			for _, patch := range all {
				Expect(patch).To(And(HaveField("ResourceVersion", "7"), HaveField("UID", "u"), HaveField("Change", MatchJSON(`{"spec":{"replicas":3}}`))))
			}
			Expect(patches.Take()).To(BeEmpty())
		}
	})
})

// answering is a server that answers with a code, and fails the spec unless it gets a whole patch.
type answering int

func (a answering) RoundTrip(request *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(request.Body)
	Expect(err).NotTo(HaveOccurred())
	Expect(body).To(HaveLen(68))
	return &http.Response{StatusCode: int(a), Body: http.NoBody}, nil
}
