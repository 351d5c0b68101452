// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"context"
	"fmt"
	"net"
	"path"
	"runtime/debug"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	pb "github.com/evenkeel/evenkeel/pkg/provider/nodegroup/externalgrpc"
)

const (
	// connectionTimeout is how long a client may take from connecting to speaking the protocol.
	connectionTimeout = 10 * time.Second
	// A connection that is silent for this time is probed: the caller may have disappeared.
	keepaliveTime, keepaliveTimeout = time.Minute, 20 * time.Second
	// maxRequestBytes is the maximum size of a request in bytes: 1 MiB can name some thousand
	// Nodes.
	maxRequestBytes = 1 << 20
	// maxStreams is how many calls of one connection may be in progress: the caller makes ten at a
	// time.
	maxStreams = 100
)

// Run serves on the listener from when the caches are filled until ctx ends; then it closes every
// connection. Without credentials, it serves in clear text.
func (s *Server) Run(ctx context.Context, listener net.Listener, secure credentials.TransportCredentials) error {
	defer listener.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if !cache.WaitFor(ctx, "", s.synced...) {
		return nil
	}
	if secure == nil {
		secure = insecure.NewCredentials()
	}
	s.life = ctx
	server := grpc.NewServer(
		grpc.Creds(secure), grpc.ChainUnaryInterceptor(s.observeCall, recoverPanic), grpc.WaitForHandlers(true),
		grpc.ConnectionTimeout(connectionTimeout), grpc.MaxRecvMsgSize(maxRequestBytes), grpc.MaxConcurrentStreams(maxStreams),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: keepaliveTime, Timeout: keepaliveTimeout}),
	)
	pb.RegisterCloudProviderServer(server, s)
	var others sync.WaitGroup
	defer others.Wait()
	others.Go(func() { s.runReminders(ctx) })
	others.Go(func() {
		<-ctx.Done()
		server.Stop()
	})
	klog.FromContext(ctx).Info("Serving cluster-autoscaler", "address", listener.Addr().String(), "security", secure.Info().SecurityProtocol)
	err := server.Serve(listener)
	if ctx.Err() == nil {
		cancel()
		return fmt.Errorf("serve cluster-autoscaler on %s: %w", listener.Addr(), err)
	}
	return nil
}

// observeCall counts calls and logs those that fail.
func (s *Server) observeCall(ctx context.Context, request any, call *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	begun := s.options.Clock.Now()
	response, err := handle(ctx, request)
	method, code := path.Base(call.FullMethod), status.Code(err)
	s.metrics.observe(method, code, s.options.Clock.Since(begun))
	if err != nil && code != codes.Unimplemented {
		klog.FromContext(s.life).Info("Rejected a call from cluster-autoscaler", "method", method, "code", code.String(), "because", status.Convert(err).Message())
	}
	return response, err
}

// recoverPanic limits a panic to its call.
func recoverPanic(ctx context.Context, request any, call *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (response any, err error) {
	defer func() {
		if value := recover(); value != nil {
			klog.FromContext(ctx).Error(fmt.Errorf("panic: %v", value), "Call ended", "method", call.FullMethod, "stack", string(debug.Stack()))
			response, err = nil, status.Error(codes.Internal, "panic; see the log of machine-controller-manager")
		}
	}()
	return handle(ctx, request)
}
