{{- /* With one replica a budget would say nothing or block every drain. */}}
{{- define "kite-common.poddisruptionbudget" -}}
{{- $budget := .root.Values.podDisruptionBudget }}
{{- if and $budget.enabled (gt (int .root.Values.replicas) 1) }}
apiVersion: policy/v1
kind: PodDisruptionBudget
{{ include "kite-common.metadata" . }}
spec:
  maxUnavailable: {{ $budget.maxUnavailable }}
  unhealthyPodEvictionPolicy: {{ $budget.unhealthyPodEvictionPolicy }}
  selector:
    matchLabels:
      {{- include "kite-common.selector" . | nindent 6 }}
{{- end }}
{{- end }}

{{- /* In: scraping. Out: names and the API server. A node's own probes are let in by every network. */}}
{{- define "kite-common.networkpolicy" -}}
{{- $policy := .root.Values.networkPolicy }}
{{- if $policy.enabled }}
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
{{ include "kite-common.metadata" . }}
spec:
  podSelector:
    matchLabels:
      {{- include "kite-common.selector" . | nindent 6 }}
  policyTypes:
    - Ingress
    - Egress
  ingress:
    - ports:
        - port: metrics
          protocol: TCP
      {{- with $policy.scrapeFrom }}
      from:
        {{- toYaml . | nindent 8 }}
      {{- end }}
  egress:
    - ports:
        - port: 53
          protocol: UDP
        - port: 53
          protocol: TCP
    - ports:
        {{- range $policy.apiServer.ports }}
        - port: {{ . }}
          protocol: TCP
        {{- end }}
      {{- with $policy.apiServer.cidrs }}
      to:
        {{- range . }}
        - ipBlock:
            cidr: {{ . | quote }}
        {{- end }}
      {{- end }}
    {{- with $policy.extraEgress }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
{{- end }}
{{- end }}

{{- /* Objects of the user's own, rendered as templates. */}}
{{- define "kite-common.extraobjects" -}}
{{- range .root.Values.extraObjects }}
---
{{ tpl (toYaml .) $.root }}
{{- end }}
{{- end }}
