/// What tells of a running gate.
extension Keys {
  static let metricsListen = Key(
    "metrics.listen", .metricsAddress, example: "127.0.0.1:9464",
    "Where `/metrics`, `/livez` and `/readyz` are answered without a token, and nothing else. Without it only the admin server has them."
  )
  static let logFormat = Key<GateSettings.Log.Format>(
    "log.format", .choice(), default: "auto",
    "How log lines look on standard error; with `auto` they are text on a terminal and JSON elsewhere.")
  static let logLevel = Key<GateSettings.Log.Level>(
    "log.level", .choice(), default: "info", "The least level that is logged.")
}
