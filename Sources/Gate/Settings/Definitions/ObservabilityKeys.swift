internal import ConfigurationEngine

/// The settings for metrics and logs.
extension Keys {
  static let observabilityKeys = [KeyDefinition](
    metricsListen, telemetryCollector, telemetryEncoding, telemetrySample, telemetryCA, telemetryHeaders,
    webhookURL, webhookSecret, webhookEvents, webhookRefusals, webhookCA, webhookFolder, webhookMostWaiting,
    logFormat, logLevel)

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
  static let webhookURL = Key(
    "webhooks.url", .receiver, example: "https://hooks.example.com/sallyport",
    "The server that hears of registrations, revocations and bursts of refusals, by signed messages (Standard Webhooks)."
  )
  static let webhookSecret = Key(
    "webhooks.secret_file", .file, credential: "webhooks.secret", example: "webhooks.secret",
    "A file with the secrets that sign the messages, one `whsec_…` on each line. A changed file counts at once.")
  static let webhookEvents = Key<GateSettings.Webhooks.Event>(
    "webhooks.events[]", .choice(), example: "revocations", "What the server hears of. By default all of it.")
  static let webhookRefusals = Key(
    "webhooks.refusals_per_minute", .integer(1...1_000_000), default: "100",
    "How many refusals with one code within a minute are a burst.")
  static let webhookCA = Key(
    "webhooks.ca_file", .file, example: "receiver-ca.pem",
    "Authorities that verify the server's certificate, instead of the system's.")
  static let webhookFolder = Key(
    "webhooks.folder", .file, example: "/var/lib/sallyport/webhooks",
    "The folder of messages that the server does not have yet. By default `webhooks` beside the SQLite store.")
  static let webhookMostWaiting = Key(
    "webhooks.most_waiting", .integer(1...100_000), default: "10000",
    "The maximum number of messages that wait. Further ones are dropped and counted.")
  static let logLevel = Key<GateSettings.Log.Level>(
    "log.level", .choice(), default: "info", "The minimum level of log lines.")
}
