{{- /* One flag of the program, as a line of args; nothing when the value was taken away. */}}
{{- define "kite-common.arg" -}}
{{- $value := index . 1 }}
{{- if not (kindIs "invalid" $value) }}
- {{ printf "--%s=%v" (index . 0) $value | quote }}
{{- end }}
{{- end }}

{{- define "kite-common.deployment" -}}
{{- include "kite-common.check" . }}
{{- $values := .root.Values }}
apiVersion: apps/v1
kind: Deployment
{{ include "kite-common.metadata" (merge (dict "annotations" $values.deploymentAnnotations) .) }}
spec:
  replicas: {{ $values.replicas }}
  revisionHistoryLimit: {{ $values.revisionHistoryLimit }}
  strategy:
    {{- if $values.leaderElection.enabled }}
    {{- toYaml $values.strategy | nindent 4 }}
    {{- else }}
    # Without an election two pods must never run at the same time.
    type: Recreate
    {{- end }}
  selector:
    matchLabels:
      {{- include "kite-common.selector" . | nindent 6 }}
  template:
    metadata:
      labels:
        {{- include "kite-common.podLabels" . | nindent 8 }}
      {{- with include "kite-common.annotations" (merge (dict "annotations" $values.podAnnotations) .) }}
      annotations:
        {{- . | nindent 8 }}
      {{- end }}
    spec:
      {{- include "kite-common.podSpec" . | nindent 6 }}
{{- end }}

{{- define "kite-common.podSpec" -}}
{{- $values := .root.Values }}
{{- $global := $values.global | default dict -}}
serviceAccountName: {{ .controller }}
automountServiceAccountToken: true
enableServiceLinks: false
terminationGracePeriodSeconds: {{ $values.terminationGracePeriodSeconds }}
{{- with concat ($values.imagePullSecrets | default list) ($global.imagePullSecrets | default list) | uniq }}
imagePullSecrets:
  {{- range . }}
  - name: {{ toYaml . }}
  {{- end }}
{{- end }}
{{- with default $global.priorityClassName $values.priorityClassName }}
priorityClassName: {{ toYaml . }}
{{- end }}
securityContext:
  {{- toYaml $values.podSecurityContext | nindent 2 }}
containers:
  - {{ include "kite-common.container" . | nindent 4 | trim }}
{{- if or $values.extraVolumes $values.metrics.secure.enabled }}
volumes:
  {{- if $values.metrics.secure.enabled }}
  - name: metrics-certificate
    secret:
      secretName: {{ toYaml $values.metrics.secure.certificateSecret }}
  {{- end }}
  {{- with $values.extraVolumes }}
  {{- tpl (toYaml .) $.root | nindent 2 }}
  {{- end }}
{{- end }}
{{- with default $global.nodeSelector $values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with default $global.tolerations $values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.affinity }}
affinity:
  {{- tpl (toYaml .) $.root | nindent 2 }}
{{- end }}
{{- include "kite-common.spread" . }}
{{- end }}

{{- define "kite-common.container" -}}
{{- $values := .root.Values -}}
name: {{ .controller }}
image: {{ include "kite-common.image" . | toYaml }}
imagePullPolicy: {{ $values.image.pullPolicy }}
args:
  - --listen=0.0.0.0:{{ $values.metrics.port }}
  {{- if $values.metrics.secure.enabled }}
  - --metrics-listen=0.0.0.0:{{ $values.metrics.secure.port }}
  - --metrics-auth=true
  - --tls-cert-file={{ include "kite-common.certificateFolder" . }}/tls.crt
  - --tls-key-file={{ include "kite-common.certificateFolder" . }}/tls.key
  {{- end }}
  {{- include (printf "%s.args" .controller) .root | trim | nindent 2 }}
  {{- range $values.extraArgs }}
  - {{ tpl . $.root | quote }}
  {{- end }}
env:
  - name: KITE_IDENTITY
    valueFrom:
      fieldRef:
        fieldPath: metadata.name
  - name: KITE_NAMESPACE
    valueFrom:
      fieldRef:
        fieldPath: metadata.namespace
  {{- with $values.extraEnv }}
  {{- tpl (toYaml .) $.root | nindent 2 }}
  {{- end }}
{{- with $values.extraEnvFrom }}
envFrom:
  {{- tpl (toYaml .) $.root | nindent 2 }}
{{- end }}
{{- $health := ternary "health" "metrics" $values.metrics.secure.enabled }}
ports:
  - name: {{ $health }}
    containerPort: {{ $values.metrics.port }}
    protocol: TCP
  {{- if $values.metrics.secure.enabled }}
  - name: metrics
    containerPort: {{ $values.metrics.secure.port }}
    protocol: TCP
  {{- end }}
startupProbe:
  {{- include "kite-common.probe" (list "/livez" $health $values.startupProbe) | nindent 2 }}
livenessProbe:
  {{- include "kite-common.probe" (list "/livez" $health $values.livenessProbe) | nindent 2 }}
readinessProbe:
  {{- include "kite-common.probe" (list "/readyz" $health $values.readinessProbe) | nindent 2 }}
resources:
  {{- toYaml $values.resources | nindent 2 }}
securityContext:
  {{- toYaml $values.securityContext | nindent 2 }}
{{- if or $values.extraVolumeMounts $values.metrics.secure.enabled }}
volumeMounts:
  {{- if $values.metrics.secure.enabled }}
  - name: metrics-certificate
    mountPath: {{ include "kite-common.certificateFolder" . }}
    readOnly: true
  {{- end }}
  {{- with $values.extraVolumeMounts }}
  {{- tpl (toYaml .) $.root | nindent 2 }}
  {{- end }}
{{- end }}
{{- end }}

{{- define "kite-common.certificateFolder" -}}
/etc/kite/metrics-certificate
{{- end }}

{{- define "kite-common.probe" -}}
httpGet:
  path: {{ index . 0 }}
  port: {{ index . 1 }}
{{ toYaml (index . 2) }}
{{- end }}

{{- /* Spread over nodes where that is possible; what a user writes instead gets the selector when it has none. */}}
{{- define "kite-common.spread" -}}
{{- $selector := dict "matchLabels" (include "kite-common.selector" . | fromYaml) }}
{{- $constraints := .root.Values.topologySpreadConstraints }}
{{- if and (not $constraints) (gt (int .root.Values.replicas) 1) }}
{{- $constraints = list (dict "maxSkew" 1 "topologyKey" "kubernetes.io/hostname" "whenUnsatisfiable" "ScheduleAnyway" "matchLabelKeys" (list "pod-template-hash")) }}
{{- end }}
{{- with $constraints }}
topologySpreadConstraints:
  {{- range . }}
  - {{ merge (dict) . (dict "labelSelector" $selector) | toYaml | nindent 4 | trim }}
  {{- end }}
{{- end }}
{{- end }}
