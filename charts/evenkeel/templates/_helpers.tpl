{{/* labels of every object: pass a dict of root and component */}}
{{- define "evenkeel.labels" -}}
app.kubernetes.io/name: evenkeel
app.kubernetes.io/component: {{ .component }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
{{- end }}

{{/* an image: pass a dict of root and image */}}
{{- define "evenkeel.image" -}}
{{- if .image.digest -}}
{{ .image.repository }}@{{ .image.digest }}
{{- else -}}
{{ .image.repository }}:{{ .image.tag | default .root.Chart.AppVersion }}
{{- end -}}
{{- end }}

{{/* name of something cluster-wide: pass a dict of root and name */}}
{{- define "evenkeel.wide" -}}
{{ .name }}{{ .root.Values.clusterRoleSuffix }}
{{- end }}

{{/* the account of a process: pass a dict of root, component and name */}}
{{- define "evenkeel.account" -}}
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ .name }}
  namespace: {{ .root.Release.Namespace | toYaml }}
  labels:
    {{- include "evenkeel.labels" . | nindent 4 }}
# A pod that needs the token asks for it.
automountServiceAccountToken: false
{{- end }}

{{/* binds a Role of that name: pass a dict of root, component, name, account and namespace */}}
{{- define "evenkeel.binding" -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: {{ .name }}
  namespace: {{ .namespace | toYaml }}
  labels:
    {{- include "evenkeel.labels" . | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: {{ .name }}
subjects:
- kind: ServiceAccount
  name: {{ .account }}
  namespace: {{ .root.Release.Namespace | toYaml }}
{{- end }}

{{/* binds a ClusterRole of that name: pass a dict of root, component, name and account */}}
{{- define "evenkeel.clusterBinding" -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: {{ include "evenkeel.wide" . }}
  labels:
    {{- include "evenkeel.labels" . | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: {{ include "evenkeel.wide" . }}
subjects:
- kind: ServiceAccount
  name: {{ .account }}
  namespace: {{ .root.Release.Namespace | toYaml }}
{{- end }}

{{/* begins a Role: pass a dict of root, component, name and namespace */}}
{{- define "evenkeel.role" -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: {{ .name }}
  namespace: {{ .namespace | toYaml }}
  labels:
    {{- include "evenkeel.labels" . | nindent 4 }}
{{- end }}

{{/* begins a ClusterRole: pass a dict of root, component and name */}}
{{- define "evenkeel.clusterRole" -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: {{ include "evenkeel.wide" . }}
  labels:
    {{- include "evenkeel.labels" . | nindent 4 }}
{{- end }}

{{/* lets a process ask about those who come for metrics: pass a dict of root, component and account */}}
{{- define "evenkeel.metricsAccess" -}}
{{- $with := merge (dict "name" (printf "%s-metrics" .account)) . -}}
# Who comes for metrics shows a token: the API server is asked whose it is, and whether he may get /metrics.
{{ include "evenkeel.clusterRole" $with }}
rules:
- apiGroups: [authentication.k8s.io]
  resources: [tokenreviews]
  verbs: [create]
- apiGroups: [authorization.k8s.io]
  resources: [subjectaccessreviews]
  verbs: [create]
---
{{ include "evenkeel.clusterBinding" $with }}
{{- end }}
