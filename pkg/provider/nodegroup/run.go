// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
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

	"github.com/evenkeel/evenkeel/pkg/pool"
	pb "github.com/evenkeel/evenkeel/pkg/provider/nodegroup/externalgrpc"
	"github.com/evenkeel/evenkeel/pkg/provider/nodegroup/plan"
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

// TLS are files in PEM format: the certificate of the server, and the CA certificates for clients.
type TLS struct {
	CertFile, KeyFile string
	// ClientCAFile contains the CA certificates for clients.
	ClientCAFile string
}

// IsSet reports whether any of the files is set.
func (t TLS) IsSet() bool { return t != TLS{} }

// IsComplete reports whether all of the files are set.
func (t TLS) IsComplete() bool { return t.CertFile != "" && t.KeyFile != "" && t.ClientCAFile != "" }

// Credentials returns those of a server that requires a certificate from clients. It reads the
// files again for each connection, so that renewed certificates need no restart.
func (t TLS) Credentials() (credentials.TransportCredentials, error) {
	if _, err := t.loadConfig(); err != nil {
		return nil, err
	}
	return credentials.NewTLS(&tls.Config{
		MinVersion: tls.VersionTLS12, ClientAuth: tls.RequireAndVerifyClientCert,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return t.loadConfig() },
	}), nil
}

func (t TLS) loadConfig() (*tls.Config, error) {
	cert, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("load certificate: %w", err)
	}
	signers, err := os.ReadFile(t.ClientCAFile)
	if err != nil {
		return nil, fmt.Errorf("load CA certificates for clients: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(signers) {
		return nil, fmt.Errorf("load CA certificates for clients: %w in %s", errNoCertificate, t.ClientCAFile)
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"h2"},
		Certificates: []tls.Certificate{cert}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool,
	}, nil
}

var errNoCertificate = errors.New("no certificate")

// CheckAddress returns an error if a server must not listen there. Without certificates, it must be
// loopback, since clients can add and remove machines.
func CheckAddress(address string, t TLS) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("address %q: use host:port, for example 127.0.0.1:8086: %w", address, err)
	}
	if t.IsSet() && !t.IsComplete() {
		return errors.New("the certificate, its key and the CA certificates for clients are required together: set all three files")
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) && !t.IsSet() {
		return fmt.Errorf("address %q is reachable from outside: it requires a certificate, its key and CA certificates for clients", address)
	}
	return nil
}

// remindEvery is how often the server checks for named machines that still exist.
const remindEvery = 10 * time.Second

// runReminders repeats the deletion of named machines until ctx ends.
func (s *Server) runReminders(ctx context.Context) {
	ticker := s.options.Clock.NewTicker(remindEvery)
	defer ticker.Stop()
	for {
		s.memory.forget()
		s.repeatDeletions()
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}
	}
}

// repeatDeletions asks again for the deletion of named machines that still exist.
func (s *Server) repeatDeletions() {
	for _, g := range s.memory.allGroups() {
		if len(pool.Named(g.Deployment)) == 0 {
			continue
		}
		err := s.change(s.life, g.Deployment.Name, func(_ context.Context, g plan.Group) (plan.Change, error) {
			return plan.NewReminder(g, s.memory.liveMachines(g), s.options.Clock.Now()), nil
		})
		if err != nil {
			klog.FromContext(s.life).Info("Cannot repeat the request to delete named machines", "group", g.Deployment.Name, "because", err)
		}
	}
}

// healthError returns why answers may be wrong, and nil if all is well.
func (s *Server) healthError() error {
	errs := []error{s.options.Control.Err(s.memory.deployments, s.memory.kinds.Machines), s.options.Target.Err(s.memory.kinds.Nodes)}
	if key := s.memory.written.Behind(unseenFor); key != "" {
		errs = append(errs, fmt.Errorf("the watch of MachineDeployments does not show the last write to %s", key))
	}
	return errors.Join(errs...)
}
