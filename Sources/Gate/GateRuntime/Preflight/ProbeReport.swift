internal import ConfigurationEngine
internal import Settings

/// Collects the results of probes.
struct ProbeReport {
  private let settings: GateSettings
  private(set) var results: [ProbeResult] = []

  init(_ settings: GateSettings) { self.settings = settings }

  mutating func pass(_ key: String, _ text: String) { add(.passed, key, text, nil) }
  mutating func warn(_ key: String, _ text: String, hint: String? = nil) { add(.warning, key, text, hint) }
  mutating func fail(_ key: String, _ text: String, hint: String? = nil) { add(.failed, key, text, hint) }

  mutating func fail(_ fault: StartError) { fail(fault.key, fault.reason, hint: fault.hint) }

  private mutating func add(_ outcome: ProbeResult.Outcome, _ key: String, _ text: String, _ hint: String?) {
    let origin = settings.effective.first { $0.key == key }?.origin ?? .standard
    results.append(ProbeResult(outcome, key, from: origin, text, hint: hint))
  }
}
