internal import ConfigurationEngine

/// The settings of the section `session`.
extension Keys {
  static let sessionKeys = [KeyDefinition](maxAge, idleTimeout, ping, maxMessage, closeOnRevoke)

  static let maxAge = Key(
    "session.max_age", .durationOrOff(1000...31_536_000_000), default: "12h",
    "The maximum age of a session, busy or not.")
  static let idleTimeout = Key(
    "session.idle_timeout", .durationOrOff(1000...86_400_000), default: "90s",
    "How long a peer may be silent before the session is closed. The answer to a ping counts as traffic.")
  static let ping = Key(
    "session.ping", .durationOrOff(1000...86_400_000), default: "30s",
    "How long a peer may be silent before the gate sends it a ping.")
  static let maxMessage = Key(
    "session.max_message", .size(1024...1 << 30), default: "32MiB",
    "The maximum payload of one message, as sent. A larger message closes the session with 1009.")
  static let closeOnRevoke = Key(
    "session.close_on_revoke", .durationOrOff(1000...60_000), default: "2s",
    "How soon each gate that shares the store closes the sessions of a revoked key.")
}
