internal import ConfigurationEngine

/// The settings for metrics and logs.
extension Keys {
  static let metricsListen = Key(
    "metrics.listen", .listeningAddress, example: "127.0.0.1:9464",
    "The address for `/metrics`, `/livez` and `/readyz`, without a token. By default only the admin server has them."
  )
  static let logFormat = Key<GateSettings.Log.Format>(
    "log.format", .choice(), default: "auto",
    "The format of log lines on standard error. `auto` is text on a terminal and JSON otherwise.")
  static let telemetryCollector = Key(
    "telemetry.otlp", .collector, example: "http://127.0.0.1:4318",
    "The collector that gets metrics and spans, by OTLP over HTTP. By default nothing is exported.")
  static let telemetryEncoding = Key<GateSettings.Telemetry.Encoding>(
    "telemetry.encoding", .choice(), default: "json", "The encoding of what the collector gets.")
  static let telemetrySample = Key(
    "telemetry.sample", .share, default: "0.05", "The share of requests whose spans are exported.")
  static let telemetryCA = Key(
    "telemetry.ca_file", .file, example: "collector-ca.pem",
    "Authorities that verify the collector's certificate, instead of the system's.")
  static let telemetryHeaders = Key(
    "telemetry.headers_file", .file, credential: "telemetry.headers", example: "telemetry.headers",
    "A file with header fields for the collector, such as `Authorization`, one `Name: value` on each line.")
  static let logLevel = Key<GateSettings.Log.Level>(
    "log.level", .choice(), default: "info", "The minimum level of log lines.")
}
