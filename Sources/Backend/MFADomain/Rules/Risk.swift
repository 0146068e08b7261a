/// The deviation of a sign-in from the history of its account: 0 to 100, the sum of the signals.
///
/// The server knows only the gate's identity of the caller and what it has recorded itself. It does not score places,
/// habits or the state of the phone.
public struct Risk: Sendable, Hashable {
  /// A signal against a sign-in.
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
