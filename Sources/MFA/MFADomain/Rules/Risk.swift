/// How far a sign-in is from what its account has shown before: 0 to 100, the sum of what speaks against it.
///
/// The server knows nothing of a caller but what the gate's identity says, and what it has seen itself. It knows no
/// places on the map, no habits and no state of the telephone, and scores none.
public struct Risk: Sendable, Hashable {
  /// What speaks against a sign-in.
  public enum Signal: String, Sendable, Hashable, CaseIterable {
    /// No sign-in to the account was completed from this network within 90 days.
    case network
    /// Five refusals or more at the account within fifteen minutes, from any client.
    case failures
    /// The device was enrolled less than a day ago.
    case newDevice = "new_device"
    /// The app instance was attested in Apple's development environment.
    case development

    /// How much it counts.
    public var weight: Int {
      switch self {
      case .network: 40
      case .failures: 30
      case .newDevice, .development: 20
      }
    }
  }

  public static let highest = 100
  static let manyFailures = 5
  static let newDeviceAge = Duration.seconds(86400)

  public let signals: Set<Signal>

  public var score: Int { min(Self.highest, signals.reduce(0) { $0 + $1.weight }) }

  /// The signals by their words, for the history.
  var words: String { signals.map(\.rawValue).sorted().joined(separator: ",") }
}
