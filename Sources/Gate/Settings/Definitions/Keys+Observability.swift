/// The settings for metrics and logs.
extension Keys {
  static let metricsListen = Key(
    "metrics.listen", .metricsAddress, example: "127.0.0.1:9464",
    "The address for `/metrics`, `/livez` and `/readyz`, without a token. By default only the admin server has them."
  )
  static let logFormat = Key<GateSettings.Log.Format>(
    "log.format", .choice(), default: "auto",
    "The format of log lines on standard error. `auto` is text on a terminal and JSON otherwise.")
  static let logLevel = Key<GateSettings.Log.Level>(
    "log.level", .choice(), default: "info", "The minimum level of log lines.")
}
