{{- define "kite-common.service" -}}
{{- $service := .root.Values.metrics.service }}
{{- if $service.enabled }}
apiVersion: v1
kind: Service
{{ include "kite-common.metadata" (merge (dict "annotations" $service.annotations "labels" $service.labels) .) }}
spec:
  # Nobody talks to one of the replicas; Prometheus asks each for itself.
  clusterIP: None
  selector:
    {{- include "kite-common.selector" . | nindent 4 }}
  ports:
    - name: metrics
      port: {{ ternary .root.Values.metrics.secure.port .root.Values.metrics.port .root.Values.metrics.secure.enabled }}
      targetPort: metrics
      protocol: TCP
{{- end }}
{{- end }}

{{- /* What a ServiceMonitor and a PodMonitor have in common: whom they select, and how they scrape. */}}
{{- define "kite-common.monitored" -}}
selector:
  matchLabels:
    {{- include "kite-common.selector" . | nindent 4 }}
namespaceSelector:
  matchNames:
    - {{ toYaml .root.Release.Namespace }}
{{ .list }}:
  - port: metrics
    path: /metrics
    {{- if .root.Values.metrics.secure.enabled }}
    scheme: https
    {{- with .root.Values.metrics.secure.endpoint }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
    {{- end }}
    {{- with .monitor.interval }}
    interval: {{ . }}
    {{- end }}
    {{- with .monitor.scrapeTimeout }}
    scrapeTimeout: {{ . }}
    {{- end }}
    {{- with .monitor.relabelings }}
    relabelings:
      {{- toYaml . | nindent 6 }}
    {{- end }}
    {{- with .monitor.metricRelabelings }}
    metricRelabelings:
      {{- toYaml . | nindent 6 }}
    {{- end }}
{{- end }}

{{- define "kite-common.servicemonitor" -}}
{{- $monitor := .root.Values.metrics.serviceMonitor }}
{{- if $monitor.enabled }}
apiVersion: monitoring.coreos.com/v1
kind: ServiceMonitor
{{ include "kite-common.metadata" (merge (pick $monitor "annotations" "labels" "namespace") .) }}
spec:
  {{- include "kite-common.monitored" (merge (dict "monitor" $monitor "list" "endpoints") .) | nindent 2 }}
{{- end }}
{{- end }}

{{- define "kite-common.podmonitor" -}}
{{- $monitor := .root.Values.metrics.podMonitor }}
{{- if $monitor.enabled }}
apiVersion: monitoring.coreos.com/v1
kind: PodMonitor
{{ include "kite-common.metadata" (merge (pick $monitor "annotations" "labels" "namespace") .) }}
spec:
  {{- include "kite-common.monitored" (merge (dict "monitor" $monitor "list" "podMetricsEndpoints") .) | nindent 2 }}
{{- end }}
{{- end }}

{{- /* The alerts of files/rules.yaml, as they are but for where their pages are. */}}
{{- define "kite-common.prometheusrule" -}}
{{- $rule := .root.Values.metrics.prometheusRule }}
{{- $rules := .root.Files.Get "files/rules.yaml" }}
{{- if and $rule.enabled $rules }}
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
{{ include "kite-common.metadata" (merge (pick $rule "annotations" "labels" "namespace") .) }}
spec:
  {{- $base := printf "runbook_url: %s/" (trimSuffix "/" $rule.runbookBaseUrl) }}
  {{- $rules | replace "runbook_url: docs/runbooks/" $base | trimSuffix "\n" | nindent 2 }}
{{- end }}
{{- end }}
