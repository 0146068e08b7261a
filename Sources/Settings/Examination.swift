/// What a look at the configuration has shown.
public struct Examination: Sendable, Hashable {
  /// `nil` if anything is wrong.
  public let settings: GateSettings?
  /// In the order of the file, then of `.env`, then of variables and flags; empty if there are settings.
  public let faults: [Fault]
  /// Told beside faults, too: some of them follow from a fault, and go with it.
  public let warnings: [Warning]
}
