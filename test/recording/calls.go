// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"

	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	corev1 "k8s.io/api/core/v1"

	pb "github.com/evenkeel/evenkeel/pkg/provider/nodegroup/externalgrpc"
)

// Play makes the call of a step again, and returns the request and the answer. The objects are those
// of the recording at this step.
func (o Objects) Play(ctx context.Context, server pb.CloudProviderServer, s Step) (request, answer any, err error) {
	for _, method := range pb.CloudProvider_ServiceDesc.Methods {
		if method.MethodName != s.Call {
			continue
		}
		answer, err = method.Handler(server, ctx, func(empty any) error {
			request = empty
			return o.complete(empty.(proto.Message), s.Request)
		}, nil)
		return request, answer, err
	}
	return nil, nil, fmt.Errorf("no method is named %q", s.Call)
}

// complete decodes a request, and adds to its Nodes what was omitted.
func (o Objects) complete(request proto.Message, text json.RawMessage) error {
	if text == nil {
		return nil
	}
	if err := protojson.Unmarshal(text, request); err != nil {
		return err
	}
	for _, node := range nodesOf(request) {
		if is := o.node(node.GetName()); is != nil && node.GetProviderID() == "" {
			node.ProviderID = is.ProviderID
			node.Labels, node.Annotations = orElse(node.Labels, is.Labels), orElse(node.Annotations, is.Annotations)
		}
	}
	return nil
}

func orElse(told, is map[string]string) map[string]string {
	if told == nil {
		return is
	}
	return told
}

// NewCall returns the step of a call and of what came of it.
func (o Objects) NewCall(method string, request, answer any, failed error) (Step, error) {
	step := Step{Call: method}
	if failed != nil {
		step.Code, step.Message = status.Code(failed).String(), status.Convert(failed).Message()
	}
	var err error
	if step.Request, err = encode(o.shortened(request)); err == nil && failed == nil {
		step.Answer, err = encodeAnswer(answer)
	}
	return step, err
}

// nodesOf returns the Nodes of a request.
func nodesOf(request any) []*pb.ExternalGrpcNode {
	switch r := request.(type) {
	case *pb.NodeGroupForNodeRequest:
		return []*pb.ExternalGrpcNode{r.Node}
	case *pb.NodeGroupDeleteNodesRequest:
		return r.Nodes
	}
	return nil
}

// upcoming is the random part of the name that the caller gives to a copy of a template.
var upcoming = regexp.MustCompile(`-\d+-upcoming-`)

// shortened returns a request without what the objects show, or what no answer depends on.
func (o Objects) shortened(request any) any {
	if message, ok := request.(proto.Message); ok {
		request = proto.Clone(message)
	}
	if r, ok := request.(*pb.NodeGroupAutoscalingOptionsRequest); ok {
		r.Defaults = nil
	}
	for _, node := range nodesOf(request) {
		if is := o.node(node.GetName()); is != nil && is.ProviderID == node.ProviderID && node.Labels != nil && node.Annotations != nil {
			node.ProviderID = ""
			node.Labels, node.Annotations = unless(node.Labels, is.Labels), unless(node.Annotations, is.Annotations)
		}
		if upcoming.MatchString(node.GetName()) {
			node.Name, node.Labels = upcoming.ReplaceAllString(node.GetName(), "-N-upcoming-"), nil
		}
	}
	return request
}

func unless(told, is map[string]string) map[string]string {
	if maps.Equal(told, is) {
		return nil
	}
	return told
}

// encodeAnswer has the template of a group as JSON, too.
func encodeAnswer(answer any) (json.RawMessage, error) {
	template, ok := answer.(*pb.NodeGroupTemplateNodeInfoResponse)
	if !ok {
		return encode(answer)
	}
	var node corev1.Node
	if err := node.Unmarshal(template.NodeBytes); err != nil {
		return nil, fmt.Errorf("decode template: %w", err)
	}
	return pruned(&node)
}

// encode returns a message as JSON, nil if it is empty.
func encode(message any) (json.RawMessage, error) {
	m, ok := message.(proto.Message)
	if !ok || proto.Size(m) == 0 {
		return nil, nil
	}
	spaced, err := protojson.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("encode %T: %w", message, err)
	}
	var text bytes.Buffer // protojson inserts spaces at random
	err = json.Compact(&text, spaced)
	return text.Bytes(), err
}
