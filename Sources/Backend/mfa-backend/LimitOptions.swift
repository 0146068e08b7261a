internal import ArgumentParser
internal import ConfigurationEngine
internal import MFADomain
internal import MFAService

/// The limits for callers.
struct LimitOptions: ParsableArguments {
  @Option(
    name: .customLong("messages-per-hour"), help: "Messages per hour to all users together, by SMS and by e-mail each.")
  var messages: String?

  @Option(name: .customLong("ip-messages-per-hour"), help: "Messages per hour from one client address, or off.")
  var messagesOfAddress: String?

  @Option(
    name: .customLong("ip-code-requests"),
    help: "Requests that send or guess codes, per client address: 100/50s is a burst of 100, refilled in 50 s; or off.")
  var codeRequestsOfAddress: String?

  @Option(name: .customLong("key-messages-per-hour"), help: "Messages per hour requested by one app instance.")
  var messagesOfKey: String?

  @Option(name: .customLong("key-accounts"), help: "Accounts that one app instance may create.")
  var accountsOfKey: String?

  @Option(name: .customLong("key-code-requests"), help: "Requests from one app instance that send or guess codes.")
  var codeRequestsOfKey: String?

  @Option(name: .customLong("key-requests"), help: "Other requests from one app instance.")
  var requestsOfKey: String?

  var flags: [FlagSetting] {
    [
      FlagSetting("--messages-per-hour", "limits.messages_per_hour", messages),
      FlagSetting("--ip-messages-per-hour", "limits.per_ip.messages_per_hour", messagesOfAddress),
      FlagSetting("--ip-code-requests", "limits.per_ip.code_requests", codeRequestsOfAddress),
      FlagSetting("--key-messages-per-hour", "limits.per_key.messages_per_hour", messagesOfKey),
      FlagSetting("--key-accounts", "limits.per_key.accounts", accountsOfKey),
      FlagSetting("--key-code-requests", "limits.per_key.code_requests", codeRequestsOfKey),
      FlagSetting("--key-requests", "limits.per_key.requests", requestsOfKey),
    ].compactMap(\.self)
  }
}

extension RateLimits {
  init(_ limits: BackendSettings.Limits) {
    self.init()
    standard = Bucket(limits.requestsOfKey)
    sensitive = Bucket(limits.codeRequestsOfKey)
    sensitiveOfAddress = limits.codeRequestsOfAddress.map(Bucket.init)
  }
}

extension RateLimits.Bucket {
  fileprivate init(_ rate: BackendSettings.Rate) {
    self.init(size: Double(rate.count), perSecond: Double(rate.count) / (rate.period / .seconds(1)))
  }
}
