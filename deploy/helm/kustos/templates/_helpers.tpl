{{- define "kustos.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 52 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 52 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "kustos.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "kustos.labels" -}}
{{ include "kustos.selector" . }}
app.kubernetes.io/component: gateway
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "kustos.image" -}}
{{- $image := .Values.image -}}
{{- $repository := required "image.repository is not set: push what deploy/docker/Dockerfile builds, and name it" $image.repository -}}
{{- if $image.digest }}{{ $repository }}@{{ $image.digest }}{{ else }}{{ $repository }}:{{ required "set image.tag or image.digest" $image.tag }}{{ end }}
{{- end }}

{{- define "kustos.isQuorum" -}}
{{- if eq (get .Values.settings "kustos.metadata.store" | default "log") "kraft" }}true{{ end }}
{{- end }}

{{/* How long a pod may take to stop: preStop, the answers to clients, and the rest. */}}
{{- define "kustos.stopSeconds" -}}
{{- add 40 (div (get .Values.settings "kustos.shutdown.drain.timeout.ms" | default "10000" | int) 1000) }}
{{- end }}

{{- define "kustos.advertisedPort" -}}
{{- .Values.listener.advertised.port | default .Values.listener.port | int }}
{{- end }}

{{/* What the chart itself says in kustos.properties, as YAML. */}}
{{- define "kustos.ownSettings" -}}
{{- $listener := .Values.listener -}}
{{- $host := required "listener.advertised.host is not set: the host that clients connect to" $listener.advertised.host -}}
node.id: ${env:KUSTOS_NODE_ID}
metadata.log.dir: /var/lib/kustos/metadata
listeners: CLIENTS://0.0.0.0:{{ $listener.port | int }}
advertised.listeners: CLIENTS://{{ $host }}:{{ include "kustos.advertisedPort" . }}
listener.security.protocol.map: CLIENTS:{{ $listener.protocol }}
{{- if $listener.brokerHostPattern }}
listener.name.clients.kustos.broker.host.pattern: {{ $listener.brokerHostPattern | quote }}
{{- else }}
listener.name.clients.kustos.broker.port.start: {{ add1 $listener.port | quote }}
kustos.gateway.broker.port.count: {{ $listener.brokerPorts | int | quote }}
{{- end }}
{{- if hasSuffix "SSL" $listener.protocol }}
{{- $secret := required "tls.secret is not set: a Secret with the certificate and the key of the listener" .Values.tls.secret }}
ssl.keystore.type: PEM
{{- if .Values.tls.combined }}
ssl.keystore.location: /etc/kustos/tls/{{ .Values.tls.combined }}
{{- else }}
ssl.keystore.key: ${file:/etc/kustos/tls/tls.key}
ssl.keystore.certificate.chain: ${file:/etc/kustos/tls/tls.crt}
{{- end }}
{{- end }}
kustos.http.listener: 0.0.0.0:9404
kustos.audit.sinks: json
kustos.audit.json.dir: /var/log/kustos/audit
{{- if not (include "kustos.isQuorum" .) }}
super.users: User:{{ .Values.admin.user }}
{{- end }}
{{- end }}

{{/* kustos.properties, whole. */}}
{{- define "kustos.properties" -}}
{{- $own := include "kustos.ownSettings" . | fromYaml -}}
{{- $further := .Values.settings -}}
{{- if not (get $further "kustos.upstream.bootstrap.servers") }}{{ fail "settings: kustos.upstream.bootstrap.servers is not set: the brokers that kustos guards" }}{{ end -}}
{{- if and (gt (int .Values.replicas) 1) (not (include "kustos.isQuorum" .)) }}{{ fail "replicas: nodes with logs of their own would have ACLs of their own; set kustos.metadata.store: kraft in settings, or one replica" }}{{ end -}}
{{- range $key, $value := $further -}}
{{- if and (hasKey $own $key) (not (has $key (list "super.users" "kustos.audit.sinks"))) }}{{ fail (printf "settings: %s is set by the chart, leave it out" $key) }}{{ end -}}
{{- if and (regexMatch "(passwords?|passphrase|secret|secret\\.key|jaas\\.config|keystore\\.key|certificate\\.chain|truststore\\.certificates)$" $key) (not (regexMatch "^\\$\\{(file|env):[^}]+\\}$" (toString $value))) }}{{ fail (printf "settings: %s would be a secret in a ConfigMap; put it into a Secret, name that in secrets, and write ${file:/etc/kustos/secrets/<name>/<key>}" $key) }}{{ end -}}
{{- end -}}
{{- range $key, $value := merge (dict) $further $own }}
{{ $key }}={{ $value }}
{{- end }}
{{- end }}

{{- define "kustos.environment" -}}
- name: KUSTOS_NODE_ID
  valueFrom:
    fieldRef:
      fieldPath: metadata.labels['apps.kubernetes.io/pod-index']
{{- end }}

{{- define "kustos.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
runAsNonRoot: true
capabilities:
  drop: [ALL]
{{- end }}

{{- define "kustos.mounts" -}}
- name: config
  mountPath: /etc/kustos/kustos.properties
  subPath: kustos.properties
  readOnly: true
{{- if hasSuffix "SSL" .Values.listener.protocol }}
- name: tls
  mountPath: /etc/kustos/tls
  readOnly: true
{{- end }}
{{- range .Values.secrets }}
- name: secret-{{ . }}
  mountPath: /etc/kustos/secrets/{{ . }}
  readOnly: true
{{- end }}
- name: metadata
  mountPath: /var/lib/kustos
- name: audit
  mountPath: /var/log/kustos
{{- end }}
