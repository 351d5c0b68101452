{{/*
A process: Deployment, Service, and what protects them. Pass a dict of root, component, name (of all objects and of the
account), binary, image, health (its port), replicas, args, resources; where they apply also ports, mounts, volumes, sidecars, ingress and egress.
*/}}
{{- define "evenkeel.process" -}}
{{- $v := .root.Values -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .name }}
  namespace: {{ .root.Release.Namespace | toYaml }}
  labels:
    {{- include "evenkeel.labels" . | nindent 4 }}
spec:
  replicas: {{ .replicas }}
  selector:
    matchLabels:
      app: {{ .name }}
  template:
    metadata:
      labels:
        app: {{ .name }}
        {{- include "evenkeel.labels" . | nindent 8 }}
      {{- with $v.podAnnotations }}
      annotations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
    spec:
      serviceAccountName: {{ .name }}
      automountServiceAccountToken: true
      # The worst case of a stop is an API server that hangs: writes under way 2 s, the lease 2 s, the endpoint 1 s.
      terminationGracePeriodSeconds: 15
      securityContext:
        runAsNonRoot: true
        runAsUser: 65532
        runAsGroup: 65532
        fsGroup: 65532
        seccompProfile:
          type: RuntimeDefault
      {{- with $v.image.pullSecrets }}
      imagePullSecrets:
      {{- range . }}
      - name: {{ . | toYaml }}
      {{- end }}
      {{- end }}
      {{- with $v.priorityClassName }}
      priorityClassName: {{ . | toYaml }}
      {{- end }}
      {{- with $v.nodeSelector }}
      nodeSelector:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $v.tolerations }}
      tolerations:
      {{- toYaml . | nindent 6 }}
      {{- end }}
      {{- with $v.affinity }}
      affinity:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      topologySpreadConstraints:
      - maxSkew: 1
        topologyKey: kubernetes.io/hostname
        whenUnsatisfiable: ScheduleAnyway
        labelSelector:
          matchLabels:
            app: {{ .name }}
      containers:
      - name: {{ .binary }}
        image: {{ include "evenkeel.image" . }}
        imagePullPolicy: {{ $v.image.pullPolicy }}
        args:
        {{- range .args }}
        - {{ . | quote }}
        {{- end }}
        - {{ printf "--secure-metrics-address=0.0.0.0:%v" $v.metrics.port | quote }}
        {{- if $v.metrics.tlsSecret }}
        - "--secure-metrics-cert-file=/etc/evenkeel/metrics/tls.crt"
        - "--secure-metrics-key-file=/etc/evenkeel/metrics/tls.key"
        {{- end }}
        {{- range .extraArgs }}
        - {{ . | quote }}
        {{- end }}
        ports:
        - name: health
          containerPort: {{ .health }}
        - name: metrics
          containerPort: {{ $v.metrics.port }}
        {{- with .ports }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
        # One minute to begin; until then the other probes wait.
        startupProbe:
          httpGet:
            path: /healthz
            port: health
          periodSeconds: 2
          timeoutSeconds: 5
          failureThreshold: 30
        livenessProbe:
          httpGet:
            path: /healthz
            port: health
          periodSeconds: 10
          timeoutSeconds: 5
        readinessProbe:
          httpGet:
            path: /readyz
            port: health
          periodSeconds: 5
          timeoutSeconds: 5
        resources:
          {{- toYaml .resources | nindent 10 }}
        securityContext:
          allowPrivilegeEscalation: false
          readOnlyRootFilesystem: true
          capabilities:
            drop: [ALL]
        {{- if or .mounts $v.metrics.tlsSecret }}
        volumeMounts:
        {{- with .mounts }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
        {{- if $v.metrics.tlsSecret }}
        - name: metrics-tls
          mountPath: /etc/evenkeel/metrics
          readOnly: true
        {{- end }}
        {{- end }}
      {{- with .sidecars }}
      {{- toYaml . | nindent 6 }}
      {{- end }}
      {{- if or .volumes $v.metrics.tlsSecret }}
      volumes:
      {{- with .volumes }}
      {{- toYaml . | nindent 6 }}
      {{- end }}
      {{- if $v.metrics.tlsSecret }}
      - name: metrics-tls
        secret:
          secretName: {{ $v.metrics.tlsSecret | toYaml }}
          defaultMode: 256 # 0400; the kubelet adds the pod's group
      {{- end }}
      {{- end }}
---
apiVersion: v1
kind: Service
metadata:
  name: {{ .name }}
  namespace: {{ .root.Release.Namespace | toYaml }}
  labels:
    app: {{ .name }}
    {{- include "evenkeel.labels" . | nindent 4 }}
spec:
  selector:
    app: {{ .name }}
  ports:
  - name: metrics
    port: {{ $v.metrics.port }}
    targetPort: metrics
  {{- with .servicePorts }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- if $v.podDisruptionBudget.enabled }}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ .name }}
  namespace: {{ .root.Release.Namespace | toYaml }}
  labels:
    {{- include "evenkeel.labels" . | nindent 4 }}
spec:
  maxUnavailable: 1
  # A pod that is not ready keeps no Node from being drained.
  unhealthyPodEvictionPolicy: AlwaysAllow
  selector:
    matchLabels:
      app: {{ .name }}
{{- end }}
{{- if $v.networkPolicy.enabled }}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  name: {{ .name }}
  namespace: {{ .root.Release.Namespace | toYaml }}
  labels:
    {{- include "evenkeel.labels" . | nindent 4 }}
spec:
  podSelector:
    matchLabels:
      app: {{ .name }}
  policyTypes: [Ingress, Egress]
  ingress:
  # Probes of the kubelet; there is nothing else on this port but profiles, where --profiling asks for them.
  - ports:
    - port: health
  - ports:
    - port: metrics
    {{- with $v.networkPolicy.metricsFrom }}
    from:
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- with .ingress }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
  egress:
  - ports:
    - port: 53
      protocol: UDP
    - port: 53
      protocol: TCP
    {{- with $v.networkPolicy.dnsTo }}
    to:
    {{- toYaml . | nindent 4 }}
    {{- end }}
  - ports:
    {{- range $v.networkPolicy.apiServerPorts }}
    - port: {{ . }}
    {{- end }}
    to:
    {{- range $v.networkPolicy.apiServerCIDRs }}
    - ipBlock:
        cidr: {{ . | quote }}
    {{- else }}
    # Anywhere but where clouds hand out credentials of the machine.
    - ipBlock:
        cidr: "0.0.0.0/0"
        except: ["169.254.0.0/16"]
    - ipBlock:
        cidr: "::/0"
        except: ["fd00:ec2::254/128", "fe80::/10"]
    {{- end }}
{{- end }}
{{- if $v.metrics.serviceMonitor.enabled }}
---
apiVersion: monitoring.coreos.com/v1
kind: ServiceMonitor
metadata:
  name: {{ .name }}
  namespace: {{ .root.Release.Namespace | toYaml }}
  labels:
    {{- include "evenkeel.labels" . | nindent 4 }}
    {{- with $v.metrics.serviceMonitor.labels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  selector:
    matchLabels:
      app: {{ .name }}
  endpoints:
  - port: metrics
    scheme: https
    # The label namespace is that of an object, not that of the pod.
    honorLabels: true
    interval: {{ $v.metrics.serviceMonitor.interval }}
    # Prometheus' own token; bind its account to the ClusterRole evenkeel-metrics-reader.
    bearerTokenFile: /var/run/secrets/kubernetes.io/serviceaccount/token
    tlsConfig:
      {{- if $v.metrics.tlsSecret }}
      ca:
        secret:
          name: {{ $v.metrics.tlsSecret | toYaml }}
          key: ca.crt
      serverName: {{ .name }}.{{ .root.Release.Namespace }}.svc
      {{- else if $v.metrics.serviceMonitor.insecureSkipVerify }}
      insecureSkipVerify: true
      {{- else }}
      {{- fail "metrics.serviceMonitor needs metrics.tlsSecret (with ca.crt), or metrics.serviceMonitor.insecureSkipVerify=true: then Prometheus sends its token to a server that it has not verified" }}
      {{- end }}
{{- end }}
{{- end }}
