internal import ConfigurationEngine

extension GateSettings {
  /// The messages about events to a server of the operator's.
  public struct Webhooks: Sendable, Hashable {
    public enum Event: String, Sendable, Hashable, CaseIterable { case registrations, revocations, refusals }
    public var receiver: ServerAddress
    /// Validation found secrets in the file.
    public var secretFile: String
    /// Never empty.
    public var events: Set<Event>
    /// The refusals with one code within a minute that are a burst.
    public var refusalsPerMinute: Int
    /// PEM. An absolute path; validation found a certificate in the file. `nil` for the system's authorities.
    public var caFile: String?
    /// The absolute path of the queue.
    public var folder: String
    /// The maximum number of messages in the queue.
    public var mostWaiting: Int
  }
}

extension SettingsBuilder {
  /// `nil` if nothing is sent or a value is faulty.
  mutating func webhooks(beside store: GateSettings.Store?) -> GateSettings.Webhooks? {
    let (secretFile, caFile, folder) = (
      value(Keys.webhookSecret), value(Keys.webhookCA), value(Keys.webhookFolder)
    )
    let events = elements(Keys.webhookEvents)
    warnOfEmptyList(Keys.webhookEvents, meaning: "all events")
    guard let receiver = value(Keys.webhookURL) else {
      guard !entries.isFaulty(path(Keys.webhookURL)) else { return nil }
      let reason = "has no effect without webhooks.url"
      for key in [Keys.webhookSecret, Keys.webhookCA, Keys.webhookFolder] where value(key) != nil {
        refuse(path(key), reason)
      }
      if !events.isEmpty { refuse(path(Keys.webhookEvents, 0).parent, reason) }
      return nil
    }
    if caFile != nil, !receiver.isSecure {
      refuse(path(Keys.webhookCA), "has no effect for http://, which has no certificates")
    } else {
      check(.certificates, Keys.webhookCA)
    }
    if !receiver.isSecure, !Self.isLocal(receiver.host) {
      warn(path(Keys.webhookURL), "the messages are signed but not encrypted; use https://")
    }
    if required(Keys.webhookSecret, hint: WebhookSecretFile.hint) != nil {
      checkSecretKeys(.webhookSecrets, Keys.webhookSecret, advice: WebhookSecretFile.hint)
    }
    let queue = folder ?? standardFolder(beside: store)
    if queue == nil, store != nil {
      refuse(
        path(Keys.webhookFolder), "missing; only a SQLite store has a folder of its own",
        hint: "name a folder that this gate alone writes to, such as /var/lib/sallyport/webhooks")
    }
    guard let secretFile, let queue, let refusalsPerMinute = value(Keys.webhookRefusals),
      let mostWaiting = value(Keys.webhookMostWaiting)
    else { return nil }
    return GateSettings.Webhooks(
      receiver: receiver, secretFile: secretFile,
      events: events.isEmpty ? Set(GateSettings.Webhooks.Event.allCases) : Set(events),
      refusalsPerMinute: refusalsPerMinute, caFile: caFile, folder: queue, mostWaiting: mostWaiting)
  }

  /// Names such as 127.example.com are those of other machines.
  private static func isLocal(_ host: String) -> Bool {
    host == "localhost" || host == "::1" || NetworkName.isIPv4(host) && host.hasPrefix("127.")
  }

  private func standardFolder(beside store: GateSettings.Store?) -> String? {
    guard case .sqlite(let path) = store else { return nil }
    return "\(FilePath.folder(of: path))/webhooks"
  }
}
