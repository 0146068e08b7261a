internal import ConfigurationEngine

/// The settings of the section `shutdown`.
extension Keys {
  static let shutdownKeys = [KeyDefinition](drainTimeout, unreadyDelay, linger)

  static let drainTimeout = Key(
    "shutdown.drain_timeout", .duration(100...3_600_000), default: "8s",
    "How long open sessions may take to close after SIGTERM.")
  static let unreadyDelay = Key(
    "shutdown.unready_delay", .duration(0...300_000), default: "0s",
    "How long the gate accepts sessions after SIGTERM while `/readyz` already fails, for load balancers to notice."
  )
  static let linger = Key(
    "shutdown.linger", .duration(0...604_800_000), default: "10m",
    "How long the old process keeps its sessions after `sallyport upgrade`; then it closes them with 1012.")
}
